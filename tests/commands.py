"""The command line in the process of the tests."""

from dpfast.cli import main


def run(capsys, *arguments):
    """Exit code, output, errors."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()
