"""What every other package stands on: grids, guarantees, charges, checks of parameters, and readers of containers."""
