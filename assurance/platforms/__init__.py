"""The same releases on every machine: a recorded table of outcomes, and the builds that reproduce it.

`python -m assurance.platforms.table` compares this machine with the table, `python -m assurance.platforms` does so for
every vector width and compiler, and `python -m assurance.platforms.arm64 FOLDER` on arm64. docs/assurance/platforms.md
"""
