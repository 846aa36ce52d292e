"""Independent referees: samplers of other libraries, learned events on every mechanism, planted bugs.

`python -m assurance.referees [--quick] [--only NAME]`; results in docs/assurance/referees.md.
"""
