"""Types of options: what the command line accepts, and what it says otherwise."""

from __future__ import annotations

import argparse


def whole_number(text: str) -> int:
    """A number, 0 or more."""
    return _number_from(0, text)


def positive_number(text: str) -> int:
    """A number, 1 or more."""
    return _number_from(1, text)


def _number_from(least: int, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r}: write a number, {least} or more")
    return int(text)


def named_folder(text: str) -> tuple[str, str]:
    """A benchmark and its folder, ``NAME=DIR``."""
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=DIR, such as sugarcrepe=data/sugarcrepe")
    return name, folder
