"""Commands and options that several modules add, and types of options: what is accepted, and what is said otherwise."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_RESAMPLES = 1_000_000  # of a bootstrap; each takes memory


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], Any], text: str, summary: str = ""
) -> argparse.ArgumentParser:
    """Add a command that calls ``run``. summary: its line in the list of commands, where ``text`` is too long."""
    added: argparse.ArgumentParser = commands.add_parser(name, help=summary or text, description=text)
    added.set_defaults(run=run)
    return added


def whole_number(text: str) -> int:
    """A number, 0 or more."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}: write a number, 0 or more")
    return int(text)


def between(least: int, most: int) -> Callable[[str], int]:
    """The type of a number within bounds, both included."""

    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: write a number from {least} to {most:,}")
        return int(text)

    return number


def share(text: str) -> float:
    """A number above 0 and below 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: write a share above 0 and below 1, such as 0.1")
    return number


def add_bootstrap(command: argparse.ArgumentParser) -> None:
    """Add the options of intervals: ``--seed`` and ``--resamples``."""
    command.add_argument("--seed", type=whole_number, default=0, metavar="N", help="seed of the bootstrap (default: 0)")
    command.add_argument(
        "--resamples",
        type=between(0, MOST_RESAMPLES),
        default=2000,
        metavar="N",
        help="resamples of the bootstrap (default: 2000); 0 for no intervals",
    )


def add_cache(command: argparse.ArgumentParser, only_with: str = "") -> None:
    """Add ``--cache``. only_with: the option without which nothing is encoded."""
    only = f"with {only_with}: " if only_with else ""
    said = f"{only}folder of what was encoded (default: ~/.cache/twinset/features)"
    command.add_argument("--cache", type=Path, metavar="DIR", help=said)


def named_folder(text: str) -> tuple[str, str]:
    """A benchmark and its folder, ``NAME=DIR``."""
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=DIR, such as sugarcrepe=data/sugarcrepe")
    return name, folder
