"""Assurance beyond the tests: what machines prove, and where the library has run. docs/assurance

Each part is one command, `python -m assurance.NAME`, and has a page in docs/assurance with its results.
"""
