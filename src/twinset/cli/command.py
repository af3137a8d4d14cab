"""Commands are plain functions: positional parameters are arguments, those by keyword are options, and docstrings are
their help. A function prints what it found by `answer`, and returns its exit code, or None for 0.
"""

import contextlib
import inspect
import json as json_module
import logging
import re
import sys
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import asdict, is_dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from twinset.cli.terminal import print_facts
from twinset.contracts.errors import WrongUse, in_words

#: Of a docstring's ``Args``: a name, and its words until the next one.
EXPLAINED = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
#: Where the command that runs prints what it found, and whether as JSON.
_answers: dict[str, Any] = {"json": False, "stdout": sys.stdout}


def answer(document: Any, show: Callable[[], Any] | None = None) -> None:
    """Print what a command found on stdout, where nothing else is printed: with ``--json`` the document, else words.

    Args:
        show: prints the words; without it they are the names and values of the document.
    """
    with contextlib.redirect_stdout(_answers["stdout"]):
        if _answers["json"]:
            from twinset.contracts.canonical import finite

            print(json_module.dumps(finite(document), default=_plain), flush=True)
        elif show is None:
            print_facts(document)
        else:
            show()


def _plain(value: Any) -> Any:
    """What JSON has not: of a record its fields, of anything else its words."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def command(app: typer.Typer, function: Callable[..., Any], name: str | None = None, panel: str | None = None) -> None:
    """Add a function as a command, with the options that every command has. panel: of the list of commands."""
    text, _, described = (inspect.getdoc(function) or "").partition("\n\nArgs:\n")
    explained = {option: " ".join(words.split()) for option, words in EXPLAINED.findall(described)}

    def run(
        *,
        json: Annotated[bool, typer.Option(help="print one JSON document on stdout, and nothing else there")] = False,
        verbose: Annotated[bool, typer.Option(help="show log lines")] = False,
        **given: Any,
    ) -> int:
        if verbose:
            logging.getLogger().setLevel(logging.INFO)
        _answers.update(json=json, stdout=sys.stdout)
        arguments = {option: tuple(value) if isinstance(value, list) else value for option, value in given.items()}
        with contextlib.redirect_stdout(sys.stderr):
            return int(function(**arguments) or 0)

    own = inspect.signature(function, eval_str=True).parameters.values()
    *shared, _ = inspect.signature(run).parameters.values()
    parameters = [_parameter(parameter, explained.get(parameter.name, "")) for parameter in (*own, *shared)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app.command(name or function.__name__, help=text, rich_help_panel=panel)(run)


def _parameter(parameter: inspect.Parameter, text: str) -> inspect.Parameter:
    """A parameter as typer takes it. text: its help, where that is not of its type."""
    kind, name = parameter.annotation, parameter.name.rstrip("_").replace("_", "-")
    is_option = parameter.kind is parameter.KEYWORD_ONLY
    mark = typer.Option() if is_option else typer.Argument(metavar=name.upper())
    annotated = get_args(kind)[0] if get_origin(kind) in (Union, UnionType) else kind  # of what may be None
    if get_origin(annotated) is Annotated:
        kind, mark = get_args(annotated)
    mark = copy(mark)
    mark.help = text or mark.help
    mark.show_default = parameter.default not in (None, False, (), "")
    if is_option:
        mark.param_decls = (f"--{name}", "-o") if name == "out" else (f"--{name}",)
    if kind == tuple[str, ...]:
        kind, mark.help = list[str], f"{mark.help}; may be repeated"
    default = [] if parameter.default == () else parameter.default
    return parameter.replace(kind=parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, mark])


class Imported(TyperCommand):
    """A command by its name alone; its function is imported when it runs, not for the list of commands."""

    def __init__(self, point: EntryPoint, text: str) -> None:
        super().__init__(point.name, help=text)
        self.point = point

    def load(self) -> Any:
        """The command itself; raises `WrongUse` where its package fails."""
        app = typer.Typer(add_completion=False)
        try:
            command(app, self.point.load(), self.point.name)
            return typer.main.get_command(app)
        except (Exception, SystemExit) as error:
            raise WrongUse(f"the command {self.point.name}: {in_words(error)}; correct its package") from error


class Commands(TyperGroup):
    """A group of commands, to which installed packages bring more by entry points of ``twinset.NAME_commands``."""

    def imported(self) -> Iterator[Imported]:
        """The commands that are imported when they run."""
        from twinset.contracts import doors

        for point in doors.installed(f"twinset.{self.name}_commands").values():
            yield Imported(point, f"of {point.dist.name} {point.dist.version}" if point.dist else "")

    def list_commands(self, ctx: Any) -> list[str]:
        """As `TyperGroup.list_commands`."""
        self.commands = {entry.point.name: entry for entry in self.imported()} | {**self.commands}
        return sorted(self.commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As `TyperGroup.resolve_command`."""
        self.list_commands(ctx)
        name, chosen, rest = super().resolve_command(ctx, args)
        return name, chosen.load() if isinstance(chosen, Imported) else chosen, rest


def place(text: str) -> str:
    """A folder or a URL."""
    if not text or "\0" in text:
        raise typer.BadParameter("name a folder or a URL such as s3://bucket/prefix")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise typer.BadParameter(f"{text!r}: a name that is not UTF-8 cannot be recorded") from error
    return text


# Types of parameters that several commands have.
Place = Annotated[str, typer.Option(parser=place, metavar="PLACE")]
Dataset = Annotated[str, typer.Argument(parser=place, metavar="OUT", help="folder or URL of a dataset")]
Recipe = Annotated[str, typer.Argument(metavar="RECIPE", help="name of a shipped recipe, or path of a YAML file")]
Only = Annotated[tuple[str, ...], typer.Option(metavar="SUBSET", help="this subset, and what it reads")]
Settings = Annotated[tuple[str, ...], typer.Option(metavar="KEY.PATH=VALUE", help="override a setting")]
Workers = Annotated[int, typer.Option(min=0, max=65_536, help="shards at a time; 0: one a core")]
LogForm = Annotated[Literal["text", "json"], typer.Option(help="json: lines on stderr are objects, one a shard")]
Seed = Annotated[int, typer.Option(min=0, help="of what is sampled at random")]
Resamples = Annotated[int, typer.Option(min=0, max=1_000_000, help="of the bootstrap; 0 for no intervals")]
Cache = Annotated[Path | None, typer.Option(help="of what was encoded (default: ~/.cache/twinset/features)")]
Device = Annotated[Literal["cpu", "gpu"], typer.Option(help="where models run")]
