"""Work in forked children of the tests: each ends within a minute, and none goes on with the tests themselves."""

import os
import pickle
import signal
import tempfile
import traceback

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def forked(work):
    """The process of a child that runs `work`."""
    if child := os.fork():
        return child
    try:
        signal.alarm(60)
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def status_of(child):
    """How the child ended: 0, 1 after an error, or -k if signal k killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_child(work):
    """How a forked child ends that runs `work`."""
    return status_of(forked(work))


def answer_of_child(work):
    """What `work` returns in a forked child."""
    with tempfile.TemporaryFile() as file:
        assert in_child(lambda: (pickle.dump(work(), file), file.flush())) == 0
        file.seek(0)
        return pickle.load(file)
