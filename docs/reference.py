"""Writes docs/reference.md, each kind of each door with its settings: ``make reference``."""

from itertools import groupby
from pathlib import Path
from typing import Any

from twinset.cli.kinds import all_kinds, settings_of, summary

PAGE = Path(__file__).with_name("reference.md")
HEAD = """<!-- Written by `make reference` from the code; edit the docstrings instead. -->

# Reference

What a recipe or a command chooses by name, and the names of its settings. This explains them, with types, defaults and
bounds:

    twinset kinds image-pairs

`twinset kinds` lists what is installed, [twinset-extras](../extras/README.md) too.

A stage is the name of another stage of the recipe, or the folder or URL of one that was built. Paths count from the
recipe's folder. Every source also takes `licence`, `credit` and `source_url`, for records that do not state their own.
On the command line `validate_every` is `--validate-every`."""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for door, listed in groupby(all_kinds(here=True), lambda kind: kind[0]):
        kinds = [(name, summary(part), written_settings(part)) for _, name, part in listed]
        shared = [setting for setting in kinds[0][2] if all(setting in settings for _, _, settings in kinds)]
        parts.append(f"## {door.capitalize()}")
        parts += [f"All take {', '.join(shared)}."] * bool(shared)
        for (what, settings), alike in groupby(kinds, lambda kind: kind[1:]):
            parts.append(f"### {', '.join(name for name, _, _ in alike)}")
            own = [setting for setting in settings if setting not in shared]
            parts += [*[what] * bool(what), *[f"Settings: {', '.join(own)}."] * bool(own)]
    return "\n\n".join(parts) + "\n"


def written_settings(part: Any) -> list[str]:
    """The settings of a kind; not those within a setting."""
    settings = [setting for setting in settings_of(part) if "." not in setting["setting"]]
    return [f"`{setting['setting']}`" + " (required)" * (setting["default"] == "required") for setting in settings]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
