"""Writes docs/reference.md, each kind of each door with its settings: ``make reference``."""

from pathlib import Path

from twinset.cli.kinds import all_kinds, settings_of, summary

PAGE = Path(__file__).with_name("reference.md")
HEAD = """<!-- Written by `make reference` from the code; edit the docstrings instead. -->

# Reference

What a recipe or a command chooses by name, and the names of its settings. **`twinset kinds NAME` explains them**, with
types, defaults and bounds. `twinset kinds` lists what is installed, [twinset-extras](../extras/README.md) too.

A stage is the name of another stage of the recipe, or the folder or URL of one that was built. Paths count from the
recipe's folder. Every source also takes `licence`, `credit` and `source_url`, for records that do not state their own.
On the command line `validate_every` is `--validate-every`."""


def page() -> str:
    """The whole page."""
    parts, last = [HEAD], ""
    for door, name, part in all_kinds(here=True):
        parts += [f"## {door.capitalize()}"] if door != last else []
        settings = [setting for setting in settings_of(part) if "." not in setting["setting"]]
        words = [f"`{one['setting']}`" + " (required)" * (one["default"] == "required") for one in settings]
        parts.append(f"### {name}\n\n{summary(part)}" + (f"\n\nSettings: {', '.join(words)}." if words else ""))
        last = door
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
