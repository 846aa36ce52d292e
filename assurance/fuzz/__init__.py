"""Fuzzers, guided by coverage, of what reads bytes from outside. docs/assurance/fuzzing.md

`python -m assurance.fuzz --minutes 10`. Each target has faults, which the fuzzer must find before.
"""
