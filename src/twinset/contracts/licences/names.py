"""What licences are called: by SPDX, by the Hugging Face Hub, by their address."""

import re
from functools import lru_cache

import yaml
from license_expression import get_license_index

from twinset.contracts.locations import shipped

OTHER = "other: "
AND = " AND "  # SPDX's word: all of these hold
UNKNOWN = "unknown"  # the Hub's word: nobody says it
LONGEST_CREDIT = 2000  # characters

_CC_URL = re.compile(
    r"https?://creativecommons\.org/(?:licenses|publicdomain)/([a-z-]+)/(\d\.\d)(/(deed|legalcode).*|/?)"
)
# No scheme that a page would run (javascript:) or that names this machine (file:).
_URL = re.compile(r"(?:https?|ftp|doi|s3|gs|hf)://[^\s\x00-\x1f\x7f]{1,2000}", re.IGNORECASE)


def _key(text: str) -> str:
    """The same for ``CC BY 4.0`` and ``cc-by-4.0``, for ``MIT License`` and ``mit``."""
    return re.sub(r"(?<!un)licen[cs]e|[^a-z0-9+]", "", text.casefold())  # the Unlicense has no other name


HUB = yaml.safe_load((shipped("manifests") / "licences.yaml").read_text("utf-8"))
_LISTED = {
    entry["spdx_license_key"]: entry["other_spdx_license_keys"]
    for entry in get_license_index()
    if not (entry["is_exception"] or (entry["spdx_license_key"] or "LicenseRef").startswith("LicenseRef"))
}
#: Identifiers of https://spdx.org/licenses.
SPDX = frozenset[str](_LISTED)
#: Names by the `_key` of each way to write them, such as older identifiers and the Hub's names.
_KNOWN: dict[str, str] = {_key(older): name for name, spellings in _LISTED.items() for older in spellings}
_KNOWN |= {_key(name): name for name in (*SPDX, *HUB["alone"])}
_KNOWN |= {_key(hub): name for name, hub in HUB["renamed"].items()} | {"cc0": "CC0-1.0"}


@lru_cache(maxsize=4096)
def known_licence(text: str) -> str | None:
    """A licence as it is called here, from its name or URL, or several with `AND` between them; "" for nothing.

    None for one that no list knows and that does not begin with ``other:``.
    """
    names = {_known_name(part) for part in text.split(AND)} if text.strip() else set()
    return None if None in names else AND.join(sorted(filter(None, names)))


def licence_named(text: str) -> str:
    """As `known_licence`; raises `ValueError` for one that is not known."""
    if (known := known_licence(text)) is not None:
        return known
    part = " ".join(next(part for part in text.split(AND) if _known_name(part) is None).split())
    raise ValueError(f"{part[:100]!r} is not the name or URL of a known licence; write others as 'other: NAME OR URL'")


def _known_name(text: str) -> str | None:
    """What a single licence is called here; as `known_licence`."""
    text = " ".join(text.split())
    if text.startswith("other:") and (named := text.removeprefix("other:").strip()):
        return OTHER + named
    text = text.removeprefix("https://spdx.org/licenses/").removesuffix(".html")
    if match := _CC_URL.fullmatch(text):
        text = {"zero": "CC0", "mark": "CC-PDM"}.get(match[1], f"CC-{match[1]}") + f"-{match[2]}"
    return _KNOWN.get(_key(text))


def credit_named(text: str) -> str:
    """Whom to credit, on one line, without control characters; raises `ValueError` for more than a credit."""
    text = " ".join("".join(letter for letter in text if letter.isprintable() or letter.isspace()).split())
    if len(text) > LONGEST_CREDIT:
        raise ValueError(f"must have at most {LONGEST_CREDIT:,} characters; name a page with all names")
    return text


def url_named(text: str) -> str:
    """Where something is found; raises `ValueError` for what is not an address."""
    if (text := text.strip()) and not _URL.fullmatch(text):
        remedy = "write it with its scheme, as in https://example.org/photo"
        raise ValueError(f"{text[:100]!r} is not a URL of the web; {remedy}")
    return text
