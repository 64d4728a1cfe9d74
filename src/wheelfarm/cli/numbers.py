"""Numbers on the command line: a text comes in, a count goes out or the argument's complaint."""

import argparse


def count(text: str) -> int:
    """Return a whole number of 1 or more; argparse.ArgumentTypeError for anything else."""
    if not text.isascii() or not text.isdigit() or not int(text[:18]):
        message = f"{text!r} is no count: a whole number of 1 or more"
        raise argparse.ArgumentTypeError(message)
    return int(text[:18])
