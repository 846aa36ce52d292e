"""Promises across modules: guarantees, outcomes, threats, documentation."""
