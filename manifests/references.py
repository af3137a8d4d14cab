"""What twinset's own sources, scorers and engines are to be cited with: entries of ``references.bib``, by key."""

import re
from functools import cache
from pathlib import Path


def bibtex(*keys: str) -> str:
    """The BibTeX entries with these keys, in this order, with an empty line between them."""
    return "\n\n".join(_entries()[key] for key in keys)


@cache
def _entries() -> dict[str, str]:
    entries = Path(__file__).with_name("references.bib").read_text("utf-8").strip().split("\n\n")
    return {re.split("[{,]", entry, maxsplit=2)[1]: entry for entry in entries}
