"""Completion of commands and options in a shell, by argcomplete."""

from __future__ import annotations

import argparse
import os
from typing import Any

SHELLS = ("bash", "zsh", "fish")


def is_completing() -> bool:
    """Whether a shell asks for completions."""
    return "_ARGCOMPLETE" in os.environ


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer a request for completions and exit, if this is one."""
    if is_completing():
        import argcomplete

        argcomplete.autocomplete(parser)


def completion(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the code that a shell evaluates to complete the commands and options of dpfast."""
    try:
        import argcomplete
    except ImportError:
        from dpfast.tables import TableError

        raise TableError("completion requires argcomplete: pip install 'dpfast[completion]'") from None
    return {"text": argcomplete.shellcode(["dpfast"], shell=arguments.shell)}
