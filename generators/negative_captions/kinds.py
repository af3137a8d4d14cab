"""The seven kinds of negative captions (SugarCrepe; BiVLC, Table 1), and the columns of their table."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from twinset.generators.scene_graphs.caption_files import Caption
from twinset.manifests.candidate import Candidate
from twinset.manifests.canonical import identity_of, sample_key
from twinset.shards.kinds.samples import TableRows


@dataclass(frozen=True, slots=True)
class NegativeKind:
    """What is done to a caption. type: ``replace``, ``swap`` or ``add``; subtype: ``obj``, ``att`` or ``rel``."""

    type: str
    subtype: str

    @property
    def name(self) -> str:
        """Such as ``replace_obj``, as SugarCrepe's files are called."""
        return f"{self.type}_{self.subtype}"


#: By name, in the order of the papers' tables.
KINDS = {
    kind.name: kind
    for kind in (
        NegativeKind("replace", "obj"),
        NegativeKind("replace", "att"),
        NegativeKind("replace", "rel"),
        NegativeKind("swap", "obj"),
        NegativeKind("swap", "att"),
        NegativeKind("add", "obj"),
        NegativeKind("add", "att"),
    )
}


def kind_name(type: str, subtype: str) -> str:
    """Such as ``replace_obj``; empty where the kind is not known."""
    return f"{type}_{subtype}" if type else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeCaption(Candidate):
    """A caption and its negative, planned from a record or a table that has both.

    image: as the captions' source names it; may be empty. type, subtype: of the kind; empty where they are not known.
    """

    caption_id: str
    image_id: str
    image: str
    caption: str
    negative_caption: str
    type: str
    subtype: str

    @property
    def counted_as(self) -> str:
        """As `Candidate.counted_as`: its kind."""
        return kind_name(self.type, self.subtype)

    def row(self) -> dict[str, str]:
        """Its row in a table of `COLUMNS`."""
        return {name: getattr(self, name) for name in COLUMNS.names}


#: Columns of a table of negative captions.
COLUMNS = pa.schema(
    [
        pa.field(name, pa.string(), nullable=False)
        for name in ("caption_id", "image_id", "image", "caption", "negative_caption", "type", "subtype")
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeCandidate(Candidate):
    """A caption whose negative is to be written. negative_kind: name of its kind."""

    caption_id: str
    image_id: str
    image: str
    caption: str
    negative_kind: str

    @property
    def counted_as(self) -> str:
        """As `Candidate.counted_as`: the kind of its negative."""
        return self.negative_kind

    def negative(self, text: str) -> TableRows:
        """The row of its negative caption."""
        kind = KINDS[self.negative_kind]
        row = {name: getattr(self, name) for name in ("caption_id", "image_id", "image", "caption")}
        return TableRows(self.key, [{**row, "negative_caption": text, "type": kind.type, "subtype": kind.subtype}])


def planned(captions: Iterable[Caption], kinds: Iterable[str], name: str, split: str) -> Iterator[NegativeCandidate]:
    """The kinds of one caption after the other; those of a caption are a group. name: of the stage."""
    kinds = tuple(kinds)
    for read in captions:
        group = sample_key(name, read.caption_id)
        for kind in kinds:
            yield NegativeCandidate(
                key=sample_key(name, read.caption_id, kind),
                identity=identity_of(read.caption_id, kind),
                group=group,
                split=split,
                caption_id=read.caption_id,
                image_id=read.image_id,
                image=read.image,
                caption=read.caption,
                negative_kind=kind,
            )
