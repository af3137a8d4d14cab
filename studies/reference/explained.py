"""What the docstrings of a class say of its fields, in sentences that begin with ``name:`` or ``one, two:``."""

import inspect
import re
from collections.abc import Collection, Mapping

#: Where an explanation begins: at the start of a paragraph, or after a sentence or clause.
_BEGINS = re.compile(r"(?:^|(?<=[.;:)]\s))((?:[a-z_][a-z_0-9]*, )*[a-z_][a-z_0-9]*): ")


def summary(described: object) -> str:
    """The first line of a docstring, without the full stop; empty where there is none."""
    text = inspect.getdoc(getattr(described, "func", described)) or ""  # of a partial, what is called
    return plain(" ".join(text.split("\n\n")[0].split())).removesuffix(".")


def explanations(described: type, names: Collection[str]) -> dict[str, str]:
    """What a class and its bases say of fields, by name: the nearest class that says more than "as `Base`"."""
    found: dict[str, str] = {}
    for one in described.__mro__:
        for name, words in _of_text(one.__dict__.get("__doc__") or "", names).items():
            if not words.startswith("as `"):
                found.setdefault(name, words)
    return found


def sections(described: object) -> dict[str, str]:
    """A docstring by its sections, as Markdown: the text before any of them is named ``""``."""
    found, name = {"": ""}, ""
    for line in plain(inspect.getdoc(described) or "").splitlines():
        begins = re.fullmatch(r"(Args|Returns|Yields|Raises|Attributes):", line)
        if begins is not None:
            name = begins[1]
            found[name] = ""
        else:
            found[name] += line + "\n"
    return {name: inspect.cleandoc("\n" + text).strip() for name, text in found.items()}


def items(section: str) -> list[tuple[str, str]]:
    """Names and words of a section of items ``name: words``, whose further lines are indented."""
    found: list[tuple[str, str]] = []
    for line in section.splitlines():
        begins = re.match(r"((?:\w+, )*\w+): (.*)", line)
        if begins is not None:
            found.append((begins[1], begins[2]))
        elif line.strip() and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    return found


def _of_text(text: str, names: Collection[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        line = " ".join(paragraph.split())
        starts = [one for one in _BEGINS.finditer(line) if set(one[1].split(", ")) <= set(names)]
        ends = [*(one.start() for one in starts[1:]), len(line)][: len(starts)]
        for start, end in zip(starts, ends, strict=True):
            words = plain(line[start.end() : end]).strip().rstrip(";.")
            found |= {name: words for name in start[1].split(", ") if name not in found}
    return found


def plain(text: str) -> str:
    """Text of a docstring as Markdown: code in single backticks."""
    return text.replace("``", "`")
