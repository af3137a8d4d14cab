"""The parser of the command line: an error names the nearest word, below the usage of the command that was meant.

``twinset completion``: a script with which a shell completes commands, options and choices.
"""

import argparse
import difflib
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from twinset.cli.options import add_command, answer
from twinset.contracts import doors
from twinset.contracts.errors import in_words


class Parser(argparse.ArgumentParser):
    """A command, or one with commands below it; options are written in full."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """As argparse, but what is unknown is an error of this command, and comes before what is missing."""
        arguments = [*(sys.argv[1:] if args is None else args)]
        for one in arguments:
            if one == "--" or (self._subparsers is not None and not one.startswith("-")):
                break  # values, or a command's own options, follow
            self._check_option(one.partition("=")[0] if one.startswith("--") else one[:2])
        found, left = super().parse_known_args(arguments, namespace)
        if left:
            self.error(f"{left[0]!r}: is one argument too many; quote what has spaces, * or {{}}")
        return found, left

    def error(self, message: str) -> NoReturn:
        """Exit with 2, with the usage of this command without its options."""
        formatter = self._get_formatter()
        formatter.add_usage(None, [one for one in self._actions if one.required], [])
        usage = formatter.format_help().rstrip()
        self.exit(2, f"{usage} [OPTION …]\n{self.prog}: {message}; {self.prog} --help lists all\n")

    def _check_option(self, name: str) -> None:
        numeric = self._negative_number_matcher.match(name)
        if len(name) > 1 and name[0] == "-" and not numeric and name not in self._option_string_actions:
            self.error(f"there is no option {name}{did_you_mean(name, self._option_string_actions)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in (known := [*action.choices]):
            said = f"{value!r} is none of {', '.join(known)}{did_you_mean(str(value), known)}"
            raise argparse.ArgumentError(action, said)


def add_installed(group: str, commands: Any) -> None:
    """Add the commands of installed packages; those that fail are left out, with a line on stderr."""
    for brought in doors.installed(group).values():
        try:
            add = brought.load()
            add(Parser().add_subparsers())  # one that fails on its way leaves nothing in ``commands``
            add(commands)
        except (Exception, SystemExit) as error:
            package = f" of {brought.dist.name} {brought.dist.version}" if brought.dist else ""
            said = f"twinset: {group} {brought.name!r}{package} is left out: {in_words(error)}; correct its package"
            print(said, file=sys.stderr)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word; empty where no known one is near."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


SCRIPT = Path(__file__).with_name("completion.sh")
BEFORE = {"bash": "", "zsh": "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n"}


def add_completion(commands: Any, parser: argparse.ArgumentParser) -> None:
    """Add the command to the subparsers of ``twinset``. parser: of the whole command line."""
    text = 'print a script for completion; in ~/.bashrc: eval "$(twinset completion bash)", in ~/.zshrc with zsh'
    added = add_command(commands, "completion", completion, text, "print a script with which a shell completes words")
    added.add_argument("shell", choices=[*BEFORE], help="the shell that reads the script")
    added.set_defaults(parser=parser)


def completion(asked: argparse.Namespace) -> None:
    """``twinset completion``."""
    paths, choices, words = list[str](), list[str](), list[str]()
    for path, parser in _walk("twinset", asked.parser):
        paths.append(f'"{path}"')
        completed = list[str]()
        for one in parser._actions:
            known = [str(choice) for choice in one.choices or ()]
            completed += one.option_strings or known
            if one.option_strings and one.nargs != 0:
                asking = "|".join(f'"{path} {name}"' for name in one.option_strings)
                choices.append(f'    {asking}) words="{" ".join(known)}" ;;')
        words.append(f'      "{path}") words="{" ".join(completed)}" ;;')
    script = BEFORE[asked.shell] + SCRIPT.read_text("utf-8")
    for name, said in {
        "COMMANDS": "|".join(paths[1:]),
        "CHOICES": "\n".join(choices),
        "WORDS": "\n".join(words),
    }.items():
        script = script.replace(f"@{name}@", said)
    answer(asked, {"shell": asked.shell, "script": script}, lambda: print(script, end=""))


def _walk(path: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """A command by its words, and all below it."""
    yield path, parser
    for one in parser._actions:
        if isinstance(one, argparse._SubParsersAction):
            for name, below in one.choices.items():
                yield from _walk(f"{path} {name}", below)
