"""The asv suite: one file per public module."""
