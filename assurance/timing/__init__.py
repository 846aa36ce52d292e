"""What the time of a release depends on: `python -m assurance.timing`. docs/assurance/timing.md

`taint` and `counts` are exact and need valgrind; `clocks`, `selection` and `padding` measure times.
"""
