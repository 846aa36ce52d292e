"""The same jobs in other libraries.

``python -m bench.peers`` compares errors and run times, each library in an environment of its own (`environments`), and
writes docs/results/peers.md; `installed` holds those that are in the environment of the benchmarks, for other tables.
"""
