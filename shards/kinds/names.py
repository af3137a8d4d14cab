"""Kinds of samples: which images and texts each has, in tars and in the columns of rows and indices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SampleKind:
    """What every sample of a kind has.

    images: roles of its pictures, in the order of the tar, where each is a field ``ROLE.jpg``; a sample can lack those
    in ``optional``. texts: fields ``ROLE.txt``, and columns of rows. columns: what else of a sample is told in rows.
    """

    name: str
    images: tuple[str, ...]
    texts: tuple[str, ...]
    columns: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()

    @property
    def described(self) -> tuple[str, ...]:
        """Columns of words of a row, in order."""
        return (*self.texts, *self.columns)

    @property
    def hashed(self) -> tuple[str, ...]:
        """Columns of a row that hold the sha256 of the encoded images, in order."""
        return tuple(f"{role}_sha256" for role in self.images)


#: Distractors of the largest gallery; a template of 10 images has 9 of them and its target (GeneCIS, Table 1).
GALLERY = tuple(f"gallery{number:02d}" for number in range(14))
PARTS = ("reference", "target", "distractor")

PAIR = SampleKind("pair", ("image0", "image1"), ("caption0", "caption1"))
TRIPLET = SampleKind(
    "triplet",
    PARTS,
    ("condition",),
    (*(f"{part}_caption" for part in PARTS), *(f"{part}_id" for part in PARTS)),
    frozenset(PARTS),
)
TEMPLATE = SampleKind("template", ("reference", "target", *GALLERY), ("condition",), ("task",), frozenset(GALLERY))

KINDS = (PAIR, TRIPLET, TEMPLATE)


def kind_named(name: str) -> SampleKind:
    """The kind of samples of a name."""
    return {kind.name: kind for kind in KINDS}[name]
