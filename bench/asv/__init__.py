"""The asv suite, a file per public module."""
