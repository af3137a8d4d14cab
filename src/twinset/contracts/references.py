"""Citations: entries of ``references.bib`` by key, and BibTeX that somebody wrote."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Self

from twinset.contracts.locations import shipped

_ENTRY = re.compile(r"@\w+\s*\{\s*([^\s,{}]+)\s*,")
_FIELD = re.compile(r",\s*+(\w++)\s*+=")


def bibtex(*keys: str) -> str:
    """The BibTeX entries with these keys, in this order, with an empty line between them."""
    return "\n\n".join(_entries()[key] for key in keys)


def checked_bibtex(text: str) -> str:
    """BibTeX that somebody wrote; raises `ValueError` where it is none."""
    text = text.strip()
    if unseen := next((letter for letter in text if not letter.isprintable() and not letter.isspace()), ""):
        raise ValueError(f"BibTeX with the character {unseen!a}, which nobody sees; remove it")
    whole = _ENTRY.match(text) and text.count("{") == text.count("}") and "```" not in text
    if text and not whole:
        raise ValueError(f"{text[:60]!r} is not BibTeX; write it as @misc{{key, title = {{Title}}}}")
    return text


def checked_cite(text: str) -> str:
    """BibTeX that somebody wrote, or the key of an entry; raises `ValueError` where it is neither."""
    if (text := text.strip()) in _entries():
        return text
    if not text.startswith("@"):
        raise ValueError(f"{text[:60]!r} is neither BibTeX nor one of the keys known here: {', '.join(_entries())}")
    return checked_bibtex(text)


def cited_entry(cite: str) -> str:
    """The BibTeX of what `checked_cite` accepts."""
    return _entries().get(cite, cite)


def entries_in(text: str) -> list[str]:
    """The entries of BibTeX, each as it is written; what begins none belongs to the one before."""
    return [entry.strip() for entry in re.split(r"(?m)^(?=@\w+\s*\{)", text) if entry.strip()]


def key_of(entry: str) -> str:
    """The key of a BibTeX entry; of what is none, which other people's sources may give, its first words."""
    begin = _ENTRY.match(entry)
    return begin[1] if begin else " ".join(entry.split())[:60]


@dataclass(frozen=True, slots=True)
class Reference:
    """What to cite. title: as a card names it; address: of its page, or empty; bibtex: one entry or several."""

    title: str
    address: str = ""
    bibtex: str = ""

    @classmethod
    def of_entry(cls, entry: str) -> Self:
        """Of BibTeX, under what stands before the colon of its title; an address is one of the web."""
        _, *parts = _FIELD.split(re.sub("[{}]", "", entry))
        texts = (" ".join(text.split()).strip('", ') for text in parts[1::2])
        fields = dict(zip(map(str.lower, parts[::2]), texts, strict=True))
        title, address = fields.get("title", "").partition(":")[0] or key_of(entry), fields.get("url", "")
        return cls(title, address if re.fullmatch(r"https?://[^\s()<>\[\]\"'`\\]+", address) else "", entry)


@cache
def _entries() -> dict[str, str]:
    entries = (shipped("manifests") / "references.bib").read_text("utf-8").strip().split("\n\n")
    return {key_of(entry): entry for entry in entries}
