"""Commands and options that several modules add, and types of options: what is accepted, and what is said otherwise."""

import argparse
import contextlib
import json
import math
import tomllib
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

#: The commands but for `twinset train`: their words, and their arguments by section.
DESCRIBED = tomllib.loads(Path(__file__).with_name("options.toml").read_text("utf-8"))
ACTIONS = {"yes or no": argparse.BooleanOptionalAction}


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], Any], text: str, summary: str = ""
) -> argparse.ArgumentParser:
    """Add a command that calls ``run``, with the options that every command has.

    Args:
        run: returns the exit code, or None for 0; `answer` prints what it found.
        summary: line in the list of commands, where ``text`` is too long.
    """
    added: argparse.ArgumentParser = commands.add_parser(name, help=summary or text, description=text)
    added.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else there")
    added.add_argument("--verbose", action="store_true", default=argparse.SUPPRESS, help="show log lines")
    added.set_defaults(run=run)
    return added


def add_described(commands: Any, name: str, run: Callable[[argparse.Namespace], Any], *sections: str) -> Any:
    """As `add_command`, as ``options.toml`` describes it: with the arguments of sections, or of its own without any."""
    added = add_command(commands, name, run, DESCRIBED[name]["text"])
    for section in sections or (name,):
        add_arguments(added, section)
    return added


def add_arguments(command: Any, section: str) -> None:
    """Add the arguments of a section of ``options.toml`` to a command, or to a group of a command's."""
    for names, said in DESCRIBED[section].items():
        if names == "text":
            continue
        given = {**said, **({"action": ACTIONS.get(said["action"], said["action"])} if "action" in said else {})}
        if "type" in given:
            given["type"] = TYPES[given["type"]]
        if bounds := given.pop("range", None):
            given["type"] = between(*bounds)
        if given.pop("repeatable", False):
            add_repeatable(command, names, given.pop("metavar"), given.pop("help"), **given)
        else:
            command.add_argument(*names.split(), **given)


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def answer(asked: argparse.Namespace, document: Any, show: Callable[[], Any]) -> None:
    """Print what a command found on stdout, where nothing else is printed: with ``--json`` the document, else words.

    Args:
        show: prints the words.
    """
    with contextlib.redirect_stdout(asked.stdout):
        if asked.json:
            from twinset.contracts.canonical import finite

            print(json.dumps(finite(document), default=_plain), flush=True)
        else:
            show()


def place(text: str) -> str:
    """A folder or a URL."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("name a folder or a URL such as s3://bucket/prefix")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: a name that is not UTF-8 cannot be recorded") from error
    return text


def add_repeatable(command: Any, option: str, metavar: str, text: str, **more: Any) -> None:
    """Add an option that may be given several times."""
    command.add_argument(option, action="append", default=[], metavar=metavar, help=f"{text}; may be repeated", **more)


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


def seeds(text: str) -> tuple[str, tuple[str, ...]]:
    """A model and those that are its seeds, ``NAME=MODEL,…``."""
    name, equals, models = text.partition("=")
    if not (name and equals and models):
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=MODEL,MODEL; * in it stands for any text")
    return name, names(models)


def names(text: str) -> tuple[str, ...]:
    """Different names with commas between them."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found) or len({*found}) < len(found):
        raise argparse.ArgumentTypeError(f"{text!r}: write different names with a comma between them")
    return found


def number(text: str) -> float:
    """A finite number."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise argparse.ArgumentTypeError(f"{text!r}: write a number such as 0.5")
    return found


#: By their names in ``options.toml``.
TYPES: dict[str, Callable[[str], Any]] = {
    "benchmark": named_folder,
    "int": int,
    "names": names,
    "number": number,
    "path": Path,
    "place": place,
    "seeds": seeds,
    "whole": whole_number,
}
