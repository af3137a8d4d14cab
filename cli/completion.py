"""``twinset completion``: a script with which a shell completes commands, options and choices."""

import argparse
from collections.abc import Iterator
from typing import Any

from twinset.cli.options import add_command, answer

#: What is around the words. zsh runs bash's functions; names of files are completed where no words are known.
SCRIPT = """\
_twinset() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} at=twinset one words=
  for one in "${{COMP_WORDS[@]:1:$((COMP_CWORD - 1))}}"; do
    case "$at $one" in
      {commands}) at="$at $one" ;;
    esac
  done
  case "$at $before" in
{choices}
    *) case "$at" in
{words}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _twinset twinset
"""
BEFORE = {"bash": "", "zsh": "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n"}


def add(commands: Any, parser: argparse.ArgumentParser) -> None:
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
    filled = SCRIPT.format(commands="|".join(paths[1:]), choices="\n".join(choices), words="\n".join(words))
    script = BEFORE[asked.shell] + filled
    answer(asked, {"shell": asked.shell, "script": script}, lambda: print(script, end=""))


def _walk(path: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """A command by its words, and all below it."""
    yield path, parser
    for one in parser._actions:
        if isinstance(one, argparse._SubParsersAction):
            for name, below in one.choices.items():
                yield from _walk(f"{path} {name}", below)
