"""Licences of pictures: as files of COCO state them, and what may be made of pictures that nobody may change."""

from collections.abc import Mapping, Sequence
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import AND, OTHER, credit_named, known_licence, url_named
from twinset.contracts.licences.terms import StatedTerms, Terms


def terms_named(licence: str, credit: str, source_url: str) -> Terms | str:
    """Terms as a record states them, or the reason to leave it out."""
    if (known := known_licence(licence)) is None:
        return "unknown-licence"
    try:
        credit = credit_named(credit)
    except ValueError:
        return "unknown-credit"
    try:
        return Terms(known, credit, url_named(source_url))
    except ValueError:
        return "unknown-source-url"


def coco_terms(content: Mapping[str, Any]) -> dict[str, Terms]:
    """What a file of COCO's says of its images, by their ids as text; an address that is none is left out.

    Raises ValueError: ``licenses`` is not a list of objects with id, name and url.
    """
    listed = content.get("licenses") or []
    if not isinstance(listed, list) or not all(isinstance(row, dict) and "id" in row for row in listed):
        raise ValueError("licenses is not a list of objects with id, name and url")
    licences = {str(row["id"]): listed_licence(str(row.get("name") or ""), str(row.get("url") or "")) for row in listed}
    terms = dict[str, Terms]()
    for image in (entry for entry in content["images"] if isinstance(entry, dict)):
        licence = licences.get(str(image.get("license")), "")
        stated = terms_named(licence, "", str(image.get("flickr_url") or ""))
        terms[str(image.get("id"))] = Terms(licence) if isinstance(stated, str) else stated
    return terms


def listed_licence(name: str, url: str) -> str:
    """A licence of a list of names and addresses, as COCO's files have them; ``other`` where neither is known, "" where
    both are empty."""
    name, url = (" ".join(text.split()).replace(AND, " and ") for text in (name, url))
    stated = " ".join(filter(None, (name, f"({url})" if url else "")))
    return known_licence(url) or known_licence(name) or (stated and OTHER + stated)


def forbids_changes(licence: str) -> bool:
    """Whether one of these licences is one without derivatives."""
    return any("-ND-" in name for name in licence.split(AND))


class DerivingTerms(StatedTerms):
    """Settings of what changes pictures that it reads, or draws what captions say.

    allow_no_derivatives: whether pictures are changed or painted also where a licence allows no derivatives.
    """

    allow_no_derivatives: bool = False

    def settled(self, place: Sequence[Any], terms: Terms | None, shows: Sequence[Terms], needed: bool) -> Terms:
        """As `StatedTerms.settled`; raises `WrongUse` too where it would change what may not be changed."""
        settled = super().settled(place, terms, shows, needed)
        if not self.allow_no_derivatives and forbids_changes(settled.licence):
            raise WrongUse(
                f"{place[0]}: {list(place[1:])} would change what is licensed {settled.licence}, without derivatives "
                f"({settled.source_url or settled.credit or 'no credit'}); leave it out of what the stage reads, or "
                "set source.allow_no_derivatives: true where you have the right"
            )
        return settled
