"""Whether the inputs that settings name are there, before any work."""

from collections.abc import Collection
from pathlib import Path

from twinset.contracts.errors import WrongUse
from twinset.contracts.source import Need, PlacedSettings

#: What of `Place.what` must exist; the rest is looked for by what opens it, or made.
_NOUNS = {"file": "file", "folder": "folder", "any": "file or folder", "words": "file or folder"}


def check_places(settings: PlacedSettings, key: str, needs: Collection[Need]) -> None:
    """Raise `WrongUse` where an input is absent, naming the setting and the remedy.

    Args:
        key: of these settings in the recipe, such as ``subsets.eq-ag.source``.
        needs: which inputs the next step reads.
    """
    for setting, place, path in settings.places():
        if place.need not in needs or place.what not in _NOUNS or "://" in str(path):
            continue
        at = Path(path)
        if not {"file": at.is_file, "folder": at.is_dir}.get(place.what, at.exists)():
            noun = _NOUNS[place.what]
            raise WrongUse(
                f"{key}.{setting}: there is no {noun} {path}; name it with --set {key}.{setting}={noun.upper()}"
            )
