"""The vocabulary of EQ-Kubric (EqBen, Figure 14): names, their grammar, their shape, and the assets that show them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.recipe.strict_yaml import read_words
from twinset.contracts.source import Settings

SHIPPED = VOCABULARIES / "eq_kubric.yaml"

#: A thing lies on another when it is at most this many times as wide, and as deep, as what it lies on: at most 19 % of
#: it then sticks out at either end, and its middle rests.
OVERHANG = 1.6

Length = Annotated[float, Field(gt=0, le=3)]


class AssetUse(Settings):
    """How an asset is stood up. up: its axis that points up; yaw: degrees around Z after which it faces the viewer."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
    up: Literal["x", "y", "z", "-x", "-y", "-z"] = "z"
    yaw: float = Field(default=0, ge=-360, le=360)


class Assets(Settings):
    """The assets that show a name, by collection; none where none plainly does."""

    gso: tuple[AssetUse, ...] = ()
    procedural: tuple[AssetUse, ...] = ()


class Entry(Settings):
    """What the vocabulary says of a name.

    extent: longest side. footprint: width and depth, as it faces the viewer. top: width and depth of the part that can
    carry another thing. All in scene units, of a thing of ordinary size.
    plural: the name and an "s" when empty. unit: what such things are counted in; a pair takes "are".
    kind: the attribute set that such a thing belongs to.
    """

    extent: Length
    footprint: tuple[Length, Length]
    top: tuple[Length, Length] | None = None
    can_lie_on_top: bool = True
    plural: str = ""
    unit: Literal["", "pair", "piece"] = ""
    kind: str = ""
    assets: Assets

    def fits_on(self, under: Entry) -> bool:
        """Whether this thing can lie on ``under``, both of ordinary size."""
        if not self.can_lie_on_top or under.top is None:
            return False
        return all(own <= OVERHANG * other for own, other in zip(self.footprint, under.top, strict=True))

    def uses(self, available: Collection[str]) -> tuple[AssetUse, ...]:
        """Those of its assets whose id is available."""
        return tuple(use for use in self.assets.gso + self.assets.procedural if use.id in available)

    @model_validator(mode="after")
    def _nothing_is_longer(self) -> Entry:
        longest = max(*self.footprint, *(self.top or ()))
        if longest > self.extent:
            raise ValueError(f"the footprint or top is longer ({longest}) than the extent ({self.extent})")
        return self


class Vocabulary(Settings):
    """objects: names of objects and subjects. sets: the attribute sets, by kind, each with its members."""

    objects: dict[str, Entry]
    sets: dict[str, dict[str, Entry]]

    def entry(self, name: str) -> Entry:
        """What is said of a name, of the general list or of a set; raises `KeyError`."""
        return ChainMap(self.objects, *self.sets.values())[name]

    def use(self, name: str, asset: str) -> AssetUse:
        """How the asset drawn for a name is stood up; raises `KeyError`."""
        return {use.id: use for use in self.entry(name).uses((asset,))}[asset]

    @model_validator(mode="after")
    def _one_entry_a_name(self) -> Vocabulary:
        for kind, members in self.sets.items():
            for name, entry in members.items():
                if entry.kind != kind:
                    raise ValueError(f"{name!r} of the set {kind!r} is of kind {entry.kind!r}")
                if self.objects.get(name, entry) != entry:
                    raise ValueError(f"{name!r} is said differently among the objects and in the set {kind!r}")
        return self


@lru_cache
def load_vocabulary(path: Path = SHIPPED) -> Vocabulary:
    """The vocabulary in a YAML file; raises `WrongUse` with what is wrong where."""
    return read_words(path, Vocabulary)
