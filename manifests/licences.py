"""Licences and credits of samples: names that are known, and the terms of what shows several works at once."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn, TypedDict

from pydantic import BaseModel, field_validator

from twinset.manifests.errors import WrongUse

_TABLE = tomllib.loads(Path(__file__).with_name("licences.toml").read_text("utf-8"))
#: Licences of https://spdx.org/licenses, and those that the Hub alone names.
SPDX, PAGES = frozenset[str](_TABLE["spdx"]), dict[str, str](_TABLE["only_hub"])
OTHER = "other: "
AND = " AND "  # SPDX's word: all of these hold
#: Columns of every row, and fields of every sample's JSON, that hold its `Terms`.
TERMS = ("licence", "credit", "source_url")
PACKED = "\t"  # stands in none of them

_WORDS = {
    "creativecommons": "cc", "publicdomainmark": "ccpdm", "attribution": "by", "sharealike": "sa",
    "noncommercial": "nc", "noderivatives": "nd", "noderivs": "nd", "international": "", "unported": "", "generic": "",
    "universal": "",
}  # fmt: skip
_CC_URL = re.compile(
    r"https?://creativecommons\.org/(licenses|publicdomain)/([a-z-]+)/(\d\.\d)(/(deed|legalcode).*|/?)"
)
_SPDX_URL = re.compile(r"https?://spdx\.org/licenses/([\w.+-]+?)(\.html|\.json)?")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)


def _key(text: str) -> str:
    """The same for ``CC BY 4.0``, ``cc-by-4.0`` and ``Creative Commons Attribution 4.0 International``."""
    key = re.sub(r"licen[cs]e|[^a-z0-9+]", "", text.casefold())
    for word, short in _WORDS.items():
        key = key.replace(word, short)
    return key


def hub_name(licence: str) -> str:
    """What the Hugging Face Hub calls a licence; ``other`` where it does not know it."""
    small: str = _TABLE["hub_of"].get(licence, licence.lower())
    return small if small in (*_TABLE["hub"], *_TABLE["hub_of"].values(), *PAGES) else "other"


_KNOWN: dict[str, str] = {_key(name): name for name in (*SPDX, *PAGES)} | {
    _key(hub): name for name, hub in _TABLE["hub_of"].items()
}
_KNOWN |= {"cc0": "CC0-1.0", "gpl30": "GPL-3.0-only"}


@lru_cache(maxsize=4096)
def licence_named(text: str) -> str:
    """A licence as it is called here, from its name or URL, or several with `AND` between them; "" for nothing.

    Raises `ValueError`, naming those that are near, for one that no list knows and that does not begin with ``other:``.
    """
    return AND.join(sorted({_one(part) for part in text.split(AND)}, key=_order)) if text.strip() else ""


def _order(licence: str) -> tuple[bool, str]:
    return licence.startswith(OTHER), licence


def _one(text: str) -> str:
    text = " ".join(text.split())
    if text.startswith("other:") and (named := text.removeprefix("other:").strip()):
        return OTHER + named
    name = text
    if found := _CC_URL.fullmatch(text):
        name = {"zero": "CC0", "mark": "CC-PDM"}.get(found[2], f"CC-{found[2]}") + f"-{found[3]}"
    elif found := _SPDX_URL.fullmatch(text):
        name = found[1]
    return _KNOWN.get(_key(name)) or _refuse(text, name)


def _refuse(text: str, name: str) -> NoReturn:
    near = [_KNOWN[key] for key in difflib.get_close_matches(_key(name), _KNOWN, 4, 0.7)]
    meant = f"did you mean {', '.join(near)}? Else" if near else "name one of SPDX, or"
    raise ValueError(f"{text[:100]!r} is not the name or URL of a known licence; {meant} write 'other: NAME OR URL'")


def listed_licence(name: str, url: str) -> str:
    """A licence of a list of names and addresses, as COCO's files have them; ``other`` where neither is known."""
    for text in (url, name):
        with suppress(ValueError):
            return licence_named(text)
    return OTHER + " ".join(filter(None, (*name.split(), f"({url})" if url else "")))


def credit_named(text: str) -> str:
    """Whom to credit, on one line."""
    return " ".join(text.split())


def url_named(text: str) -> str:
    """Where something is found; raises `ValueError` for what is not an address."""
    if text and not _URL.fullmatch(text := text.strip()):
        raise ValueError(f"{text[:100]!r} is not a URL; write it with its scheme, as in https://example.org/photo")
    return text


def page_of(licence: str) -> str:
    """The address of one licence, as Croissant wants it; else its name."""
    if licence in SPDX:
        return f"https://spdx.org/licenses/{licence}"
    return PAGES.get(licence) or licence.removeprefix(OTHER)


def has_page(licence: str) -> bool:
    """Whether `page_of` gives an address that twinset knows, not one that somebody wrote."""
    return licence in SPDX or bool(PAGES.get(licence))


def needs_credit(licence: str) -> bool:
    """Whether one of these licences asks for the author's name."""
    return any(one.startswith("CC-BY-") for one in licence.split(AND))


def forbids_changes(licence: str) -> bool:
    """Whether one of these licences is one without derivatives."""
    return any("-ND-" in one for one in licence.split(AND))


def allowed(licence: str, only: frozenset[str] | None) -> bool:
    """Whether all licences of a sample are among some; any is where ``only`` is None."""
    return only is None or only.issuperset(licence.split(AND))


_CHECKS: Mapping[str, Callable[[str], str]] = dict(zip(TERMS, (licence_named, credit_named, url_named), strict=True))


class TermColumns(TypedDict):
    """`Terms` by name."""

    licence: str
    credit: str
    source_url: str


class Terms(NamedTuple):
    """Under which terms a sample is. licence: as `licence_named` gives it; several where several works are shown.
    credit: whom to name. source_url: where it comes from, with spaces between several. "" for what is unknown.
    """

    licence: str = ""
    credit: str = ""
    source_url: str = ""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Terms:
        """Those in a row of an index, or of a plan."""
        return cls(*(values[name] for name in TERMS))

    @classmethod
    def taken(cls, row: dict[str, Any]) -> Terms:
        """As `of`, removed from the row."""
        return cls(*(row.pop(name) for name in TERMS))

    @classmethod
    def named(cls, licence: str, credit: str, source_url: str) -> Terms:
        """Terms as somebody wrote them; raises `ValueError`, which begins with the field."""
        values = []
        for name, text in zip(TERMS, (licence, credit, source_url), strict=True):
            try:
                values.append(_CHECKS[name](text))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return cls(*values)

    @classmethod
    def unpacked(cls, text: str) -> Terms:
        """As they were `packed`; "" is nothing."""
        return cls(*text.split(PACKED))

    @property
    def packed(self) -> str:
        """All in one text, for columns in memory."""
        return PACKED.join(self)

    def filled(self, others: Terms) -> Terms:
        """Each that is unknown taken from others."""
        return self if all(self) else Terms(*(own or other for own, other in zip(self, others, strict=True)))

    @property
    def columns(self) -> TermColumns:
        """Each by its name."""
        return {"licence": self.licence, "credit": self.credit, "source_url": self.source_url}


NOTHING = Terms()


def together(shown: Sequence[Terms]) -> Terms:
    """The terms of a sample that shows several works: all licences; each credit with its licence where these differ."""
    distinct = list(dict.fromkeys(one for one in shown if one != NOTHING))
    if len(distinct) == 1:
        return distinct[0]
    licences = {part for one in distinct for part in one.licence.split(AND) if part}
    several = len({one.licence for one in distinct}) > 1
    credits = (
        f"{one.credit} ({one.licence})" if several and one.licence and AND not in one.licence else one.credit
        for one in distinct
        if one.credit
    )
    urls = (url for one in distinct for url in one.source_url.split())
    return Terms(AND.join(sorted(licences, key=_order)), "; ".join(_once(credits)), " ".join(_once(urls)))


def _once(texts: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(texts)


class StatedTerms(BaseModel):
    """Settings that state `Terms`: of every sample, where a record does not say its own.

    A source that reads stages adds its own to those that these state, none where ``licence`` is "".

    licence: of captions and images. credit: whom to name. source_url: where they come from.
    """

    licence: str
    credit: str = ""
    source_url: str = ""

    added: ClassVar[tuple[str, ...]] = ("credit", "source_url")

    @field_validator("licence")
    @classmethod
    def _known_licence(cls, text: str) -> str:
        if not (licence := licence_named(text)) and cls.model_fields["licence"].default != "":
            raise ValueError("must not be empty; write 'unknown' where nobody says it")
        return licence

    _one_line = field_validator("credit")(credit_named)
    _address = field_validator("source_url")(url_named)

    @property
    def terms(self) -> Terms:
        """Its own licence, credit and URL."""
        return Terms(self.licence, self.credit, self.source_url)

    @property
    def derives(self) -> bool:
        """Whether it changes what it reads, or draws from it, and may not where a licence says "NoDerivatives"."""
        return False

    def settled(self, place: Sequence[Any], terms: Terms | None, shows: Sequence[Terms], needed: bool) -> Terms:
        """The terms of one candidate.

        Args:
            place: stage and identity of the candidate, for messages.
            terms: that its record states; these settings stand for what it does not say.
            shows: terms of rows of earlier stages that it is made from; these settings are added.
            needed: whether a licence must be stated.

        Raises:
            WrongUse: it would change what may not be changed, or its licence is nowhere stated.
        """
        own = self.terms
        found = together((*shows, own)) if shows else terms.filled(own) if terms else own
        if self.derives and forbids_changes(found.licence):
            raise WrongUse(
                f"{place[0]}: {list(place[1:])} would change what is licensed {found.licence}, without derivatives "
                f"({found.source_url or found.credit or 'no credit'}); leave it out of what the stage reads, or set "
                "source.allow_no_derivatives: true where you have the right"
            )
        if needed and not found.licence:
            raise WrongUse(
                f"{place[0]}: nothing states the licence of {list(place[1:])}; set source.licence of this stage, or of "
                "the one that reads the captions, 'unknown' where nobody says it"
            )
        return found
