"""Negative captions that exist, such as SugarCrepe's, as a table for later stages."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast

from pydantic import BeforeValidator, Field

from twinset.generators.annotation_files import Skipped
from twinset.generators.negative_captions.kinds import COLUMNS, NegativeCaption
from twinset.generators.negative_captions.released import REASONS, read_released, released_files
from twinset.generators.papers import BIVLC
from twinset.generators.scene_graphs.source import listed
from twinset.manifests.candidate import Candidate
from twinset.manifests.canonical import digest, identity_of, sample_key, sha256_of_file
from twinset.manifests.errors import WrongUse
from twinset.manifests.locations import Location
from twinset.manifests.source import Need, Place, Reference
from twinset.shards.contracts import Generator, LeftOut, Source
from twinset.shards.kinds.samples import TableRows

SUGARCREPE = Reference(
    "SugarCrepe",
    "https://arxiv.org/abs/2306.14610",
    """@inproceedings{hsieh2023sugarcrepe,
  title     = {{SugarCrepe}: Fixing Hackable Benchmarks for Vision-Language Compositionality},
  author    = {Hsieh, Cheng-Yu and Zhang, Jieyu and Ma, Zixian and Kembhavi, Aniruddha and Krishna, Ranjay},
  booktitle = {NeurIPS Datasets and Benchmarks},
  year      = {2023}
}""",
)


class ReplayedNegatives(Source):
    """Negative captions of released files.

    captions: folders or files, read in this order (`generators.negative_captions.released`). licence: of the captions.
    """

    kind: Literal["replayed-negatives"]
    captions: Annotated[
        tuple[Annotated[Location, Place("any", "annotations")], ...], BeforeValidator(listed), Field(min_length=1)
    ]
    licence: str = "the captions stay under the terms of their source"

    generator = "twinset.generators.negative_captions.replay:ReplayGenerator"
    makes = "table"
    reference = SUGARCREPE
    paper = BIVLC
    group = "caption"
    verb = "copied from"
    reasons: ClassVar[Mapping[str, str]] = REASONS

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `Source.check_inputs`; also whether the files are of a known form."""
        super().check_inputs(key, needs)
        if "annotations" in needs:
            try:
                released_files(self.captions)
            except WrongUse as error:
                raise WrongUse(f"{key}.captions: {error}") from error


class ReplayGenerator(Generator[ReplayedNegatives]):
    """Plans a row a record, and copies it."""

    version = 1
    candidate = NegativeCaption
    columns = COLUMNS

    def inputs(self) -> str:
        """Digest of the files, with their names, which ids begin with."""
        return digest([[path.name, *sha256_of_file(path)] for path in self._files])

    def plan(self) -> Iterator[NegativeCaption]:
        """Records in the order of the files. Raises `WrongUse` for a file of which nothing can be used."""
        self.excluded = LeftOut()
        for path in self._files:
            for read in read_released(path):
                if isinstance(read, Skipped):
                    self.excluded.add(read.reason, read.place)
                    continue
                key = sample_key(self.name, read.record)
                yield NegativeCaption(
                    key=key,
                    identity=identity_of(read.record),
                    group=key,
                    split=self.split,
                    caption_id=read.record,
                    image_id=read.image,
                    image=read.image,
                    caption=read.caption,
                    negative_caption=read.negative_caption,
                    type=read.kind.type if read.kind else "",
                    subtype=read.kind.subtype if read.kind else "",
                )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows]:
        """The planned rows."""
        for one in cast(Sequence[NegativeCaption], candidates):
            yield TableRows(one.key, [one.row()])

    @cached_property
    def _files(self) -> list[Path]:
        return released_files(self.source.captions)
