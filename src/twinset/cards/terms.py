"""Licences and credits of a subset: counted, and as card, Croissant and Hugging Face Hub want them."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl

from twinset.contracts.licences.names import AND, HUB, OTHER, SPDX, UNKNOWN
from twinset.generators.licences import forbids_changes
from twinset.generators.markdown import Markdown, cell, no_formula, ranked

CREDITS = "credits.csv"
SHOWN = 20  # credits that a card shows itself

#: Samples by licence and credit.
TermCounts = Mapping[tuple[str, str], int]


def by_licence(terms: TermCounts) -> dict[str, int]:
    """Samples by licence, most first."""
    samples = Counter[str]()
    for (licence, _), count in terms.items():
        samples[licence] += count
    return ranked(samples)


def by_credit(terms: TermCounts) -> list[tuple[str, str, int]]:
    """Credit, licence and samples, most samples first."""
    rows = [(credit, licence, count) for (licence, credit), count in terms.items() if credit]
    return sorted(rows, key=lambda row: (-row[2], row))


def uncredited(terms: TermCounts) -> int:
    """Samples whose licence asks for a credit, and which have none."""
    asking = {licence for licence, _ in terms if any(name.startswith("CC-BY-") for name in licence.split(AND))}
    return sum(count for (licence, credit), count in terms.items() if licence in asking and not credit)


def unchangeable(terms: TermCounts) -> int:
    """Samples that nobody may change and pass on."""
    return sum(count for (licence, _), count in terms.items() if forbids_changes(licence))


def lacking(name: str, terms: TermCounts) -> list[str]:
    """What terms lack of those that a published subset needs, each with the key of the recipe to set.

    Args:
        name: of the subset.
    """
    unknown = sum(count for licence, count in by_licence(terms).items() if {"", UNKNOWN} & {*licence.split(AND)})
    source, credits = f"subsets.{name}.source", uncredited(terms)
    counts = {
        f"{name}: {unknown:,} samples have no licence that is known; set {source}.licence, or one a row": unknown,
        f"{name}: {credits:,} samples have no credit; set {source}.credit, or name it in each row": credits,
    }
    return [problem for problem, count in counts.items() if count]


def single_licences(terms: TermCounts) -> list[str]:
    """Each licence that some sample is under."""
    return sorted({part for licence, _ in terms for part in licence.split(AND) if part})


def hub_name(licence: str) -> str:
    """What the Hugging Face Hub calls a licence; ``other`` where it does not know it."""
    name: str = HUB["renamed"].get(licence, licence.lower())
    return name if name in (*HUB["same"], *HUB["renamed"].values(), *HUB["alone"]) else "other"


def page_of(licence: str) -> str:
    """The address of one licence that SPDX or the Hub knows; empty for another."""
    return f"https://spdx.org/licenses/{licence}" if licence in SPDX else HUB["alone"].get(licence) or ""


def linked(licence: str) -> Markdown:
    """Licences as Markdown, those of SPDX or the Hub with their page."""
    pages = {name: page_of(name) for name in licence.split(AND)}
    links = (f"[{name}]({page})" if page else cell(name.removeprefix(OTHER)) for name, page in pages.items())
    return Markdown(" and ".join(links))


def licence_pages(terms: TermCounts) -> list[str]:
    """Addresses of the licences, or names of those that have none."""
    return [page_of(name) or name.removeprefix(OTHER) for name in single_licences(terms)]


def credits_file(terms: TermCounts) -> bytes:
    """The credits as CSV."""
    rows = [(no_formula(credit), no_formula(licence), count) for credit, licence, count in by_credit(terms)]
    return pl.DataFrame(rows, ["credit", "licence", "samples"], orient="row").write_csv().encode()


def hub_licence(terms: TermCounts) -> dict[str, Any]:
    """What the front matter of a card says of licences, as the Hub reads it."""
    names = sorted({hub_name(name) for name in single_licences(terms)}) or ["other"]
    front: dict[str, Any] = {"license": names[0] if len(names) == 1 else names}
    return {**front, "license_name": "see-the-card"} if "other" in names else front
