"""``method="auto"`` against the best mechanism: ``python -m bench.choices`` prints tables of docs/guides/choosing.md.

It takes about five minutes; ``--quick`` is a smoke test.
"""

import argparse

from bench.pages import chosen


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.choices", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small and few data sets")
    print(chosen.section(parser.parse_args(arguments).quick))


if __name__ == "__main__":
    main()
