"""Plans captions, a candidate each, and parses them into rows, a relation each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import ClassVar, TypeVar, cast

import pyarrow as pa

from generators.scene_graphs.caption_sources import CaptionSources
from generators.scene_graphs.captions import Caption
from generators.scene_graphs.relations import (
    BATCH,
    LIBRARIES,
    Pipeline,
    Relation,
    SceneGraphParser,
    find_pipeline,
    parser_of,
)
from generators.scene_graphs.source import ParsedCaptions, SceneGraphs
from manifests.candidate import Candidate
from manifests.canonical import identity_of, sample_key
from manifests.errors import WrongUse
from manifests.repeated_ids import Ids
from shards.contracts import Generator, LeftOut
from shards.kinds.samples import Rejected, TableRows

TEXTS = ("caption_id", "image_id", "caption", "image")
WORDS, SPANS = Relation._fields[:6], Relation._fields[6:]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionCandidate(Candidate):
    """A caption of an image, as `generators.scene_graphs.captions.Caption` has it."""

    caption_id: str
    image_id: str
    caption: str
    image: str
    place: str


S = TypeVar("S", bound=ParsedCaptions)


class CaptionGenerator(Generator[S]):
    """Plans from captions."""

    def inputs(self) -> str:
        """Digest of the captions."""
        return self._captions.digest()

    def captions(self) -> Iterator[Caption]:
        """Captions in the order of the files, for `plan`; memory grows by 8 bytes a caption.

        Raises `WrongUse` when nothing of a source can be read, or an id is that of two captions.
        """
        self.excluded = LeftOut()
        met = Ids()
        for read in self._captions.read():
            if isinstance(read, Caption):
                met.add(read.caption_id)
                yield read
            else:
                self.excluded.add(read.reason, read.place)
        if suspects := met.suspects():
            for read in self._captions.read():
                if isinstance(read, Caption) and (before := suspects.place_before(read.caption_id, read.place)):
                    raise WrongUse(
                        f"caption id {read.caption_id[:100]!r} is duplicated, at {before} and {read.place}; ids tell "
                        "captions apart: correct or remove one"
                    )

    @cached_property
    def _captions(self) -> CaptionSources:
        return CaptionSources(self.source.captions)


class ParsedCaptionGenerator(CaptionGenerator[S]):
    """Plans from captions, and works on their parse."""

    isolation = "process"  # spaCy holds the interpreter's lock
    micro_batch = BATCH
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    def device(self) -> str:
        """The parser is a neural network on the CPU."""
        return "cpu"

    def weights(self) -> Mapping[str, str]:
        """The pipeline's digest."""
        return {"pipeline": self._pipeline.digest}

    @property
    def parser(self) -> SceneGraphParser:
        """Raises `WrongUse` when the pipeline cannot be used."""
        return parser_of(self._pipeline)

    @cached_property
    def _pipeline(self) -> Pipeline:
        return find_pipeline(self.source.pipeline)


class SceneGraphGenerator(ParsedCaptionGenerator[SceneGraphs]):
    """Relations of captions, in the order of `sng_parser`, with the characters at which their phrases stand."""

    version = 1
    candidate = CaptionCandidate
    columns = pa.schema(
        [pa.field(name, pa.string(), nullable=False) for name in (*TEXTS, *WORDS)]
        + [pa.field(name, pa.int32(), nullable=False) for name in SPANS]
    )

    def plan(self) -> Iterator[CaptionCandidate]:
        """A candidate a caption, as `captions`."""
        for read in self.captions():
            key = sample_key(self.name, read.caption_id)
            identity = identity_of(read.caption_id)
            yield CaptionCandidate(key=key, identity=identity, group=key, split=self.split, **asdict(read))

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """The relations of each caption, or ``no-relation``. Raises `WrongUse` when the pipeline cannot be used."""
        captions = cast(Sequence[CaptionCandidate], candidates)
        found = self.parser.relations([one.caption for one in captions])
        for caption, relations in zip(captions, found, strict=True):
            if relations:
                texts = {name: getattr(caption, name) for name in TEXTS}
                yield TableRows(caption.key, [{**texts, **relation._asdict()} for relation in relations])
            else:
                yield Rejected(caption.key, "no-relation")
