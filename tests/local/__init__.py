"""Local privacy."""
