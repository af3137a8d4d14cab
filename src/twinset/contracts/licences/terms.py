"""Under which terms samples are: their licence, whom to credit, where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, field_validator

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import AND, credit_named, licence_named, url_named

#: Columns of every row, and fields of every sample's JSON, that hold its `Terms`.
TERMS = ("licence", "credit", "source_url")


class Terms(NamedTuple):
    """Under which terms a sample is; "" for what is unknown.

    licence: as `licence_named` gives it; of all works that are shown. credit: whom to name. source_url: where it comes
    from, with spaces between several.
    """

    licence: str = ""
    credit: str = ""
    source_url: str = ""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Terms:
        """Those in a row of an index, or of a plan."""
        return cls(*(values[name] for name in TERMS))

    def filled(self, fallback: Terms) -> Terms:
        """Each that is unknown taken from others."""
        return self if all(self) else Terms(*(own or default for own, default in zip(self, fallback, strict=True)))


NOTHING = Terms()


def together(shown: Sequence[Terms]) -> Terms:
    """The terms of a sample that shows several works: all licences; each credit with its licence where these differ."""
    distinct = list(dict.fromkeys(terms for terms in shown if terms != NOTHING))
    if len(distinct) == 1:
        return distinct[0]
    licences = {part for terms in distinct for part in terms.licence.split(AND) if part}
    several = len({terms.licence for terms in distinct}) > 1
    credits = dict.fromkeys(
        f"{terms.credit} ({terms.licence})" if several and terms.licence and AND not in terms.licence else terms.credit
        for terms in distinct
        if terms.credit
    )
    urls = dict.fromkeys(url for terms in distinct for url in terms.source_url.split())
    return Terms(AND.join(sorted(licences)), "; ".join(credits), " ".join(urls))


class StatedTerms(BaseModel):
    """Settings that state `Terms` of every sample where a record does not say its own; a source that reads stages adds
    them to those of the stages, none where ``licence`` is "".

    licence: of captions and images. credit: whom to name. source_url: where they come from.
    """

    licence: str
    credit: str = ""
    source_url: str = ""

    _known_licence = field_validator("licence")(licence_named)
    _one_line = field_validator("credit")(credit_named)
    _address = field_validator("source_url")(url_named)

    @property
    def terms(self) -> Terms:
        """Its own licence, credit and URL."""
        return Terms(self.licence, self.credit, self.source_url)

    def settled(self, place: Sequence[Any], terms: Terms | None, shows: Sequence[Terms], needed: bool) -> Terms:
        """The terms of one candidate.

        place: its stage and identity. terms: that its record states; these settings stand for what it does not say.
        shows: of rows of earlier stages that it is made from; these settings are added. needed: whether a licence must
        be stated. Raises `WrongUse`: its licence is nowhere stated.
        """
        settled = together((*shows, self.terms)) if shows else (terms or NOTHING).filled(self.terms)
        if needed and not settled.licence:
            raise WrongUse(
                f"{place[0]}: nothing states the licence of {list(place[1:])}; set source.licence of this stage, or of "
                "the one that reads the captions, 'unknown' where nobody says it"
            )
        return settled
