"""What the library promises across its modules: guarantees, outcomes, threats, documentation."""
