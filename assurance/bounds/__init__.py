"""Machine-checked bounds of the certified doubles: Gappa on the parsed C source, ball arithmetic for the rest.

`python -m assurance.bounds` proves them; docs/assurance/bounds.md has the results.
"""
