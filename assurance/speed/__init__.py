"""The instructions of small calls and of kernels, compared with a record; `docs/assurance/speed.md`.

`python -m assurance.speed` fails if a count has grown by more than 5 %, and `--record` writes the counts.
"""
