"""The settings of GeneCIS's training triplets, and how they are planned and made (GeneCIS, section 5.2)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import Field

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.errors import naming
from twinset.contracts.kinds.kind import Sample, SampleKind
from twinset.contracts.kinds.samples import Frame, Json, Rejected
from twinset.contracts.kinds.triplet import PARTS, TRIPLET
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.locations import Location
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import Need, Place, StageName
from twinset.generators.image_files import IMAGE_REASONS, SAME_IMAGE, OptionalImages, UnusableImage, looked_for_by
from twinset.generators.papers import GENECIS
from twinset.generators.reasons import reasons_beside
from twinset.generators.scene_graphs.source import TEXTS
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.ratings import CONCEPTS, load_ratings, with_plurals
from twinset.models.device import check_installed

if TYPE_CHECKING:
    from twinset.generators.triplets.mining import Miner

MINING = "mining.json"
SAID = ("subject", "predicate", "object")
MOST_BLOCKS = 32  # of numbers, for which texts are looked up at once


@dataclass(slots=True, kw_only=True)
class Triplet(Sample):
    """A triplet.

    reference, target, distractor: the last may be left out; all are None where only an index is made. The condition
    fits the distractor too. captions, image_ids: by part (`contracts.kinds.triplet.PARTS`), "" for what it lacks.
    """

    kind: ClassVar[SampleKind] = TRIPLET

    condition: str
    reference: Frame | None
    target: Frame | None
    distractor: Frame | None
    captions: Mapping[str, str]
    image_ids: Mapping[str, str]

    def described(self) -> dict[str, str]:
        words = [self.condition, *(of[part] for of in (self.captions, self.image_ids) for part in PARTS)]
        return dict(zip(self.kind.described, words, strict=True))

    def question(self, images: Mapping[str, str]) -> Any:
        """As `Sample.question`: with the same images and condition, captions and ids may differ."""
        return [self.kind.name, {"condition": self.condition} if images else self.described(), dict(images)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TripletCandidate(Candidate):
    """A mined triplet, whole: who makes it needs neither captions nor ratings.

    number: of its draw. condition: predicate and object of the target. concreteness: mean rating of its words (1-5).
    The rest is by part (`contracts.kinds.triplet.PARTS`), "" for a distractor that is not asked for: the relation that
    is said, the caption and its id, the image's id, and the name that it is looked for by.
    """

    number: int
    condition: str
    concreteness: float
    subjects: tuple[str, ...]
    predicates: tuple[str, ...]
    objects: tuple[str, ...]
    caption_ids: tuple[str, ...]
    captions: tuple[str, ...]
    image_ids: tuple[str, ...]
    images: tuple[str, ...]

    @property
    def media_names(self) -> tuple[str, ...]:
        return tuple(filter(None, self.images))


class Triplets(OptionalImages):
    """Reference, target and condition, mined from the relations of captions.

    graphs: the stage of scene graphs that they are mined from, or the folder of a finished one. concreteness: file of
    ratings (Brysbaert et al. 2014, tab-separated).
    images: folder of the captions' images, or of tars of them; only an index of triplets is made when absent.
    rules: ``strict``, or ``published`` as the authors' code has it; the card says what differs. threshold: that
    the mean concreteness of a triplet must be above. min_images: images of relations that may be used, which a subject
    needs. min_support: strict: photos whose captions must relate a subject to an object, where no caption begins with
    the relation, and that must say of an object what a condition without a verb says.
    max_uses: strict: how often one photo may be the reference, and how often the target, of 1,000 triplets in a row;
    the same two are not taken again. Where captions give no more, fewer triplets than the recipe's count are planned.
    distractors: whether an image that fits the condition, but not the reference, is stored too.
    licence: of captions and images, copied into every sample and the card.
    """

    kind: Literal["genecis-triplets"]
    graphs: StageName
    concreteness: Annotated[Location, Place("file", "annotations")]
    rules: Literal["strict", "published"] = "strict"
    threshold: float = Field(default=4.8, ge=-1, lt=5)
    min_images: int = Field(default=5, ge=2)
    min_support: int = Field(default=2, ge=1)
    max_uses: int | None = Field(default=None, ge=1)
    distractors: bool = False
    licence: str = ""

    makes = "triplet"
    reference = Reference("captions", bibtex=bibtex("brysbaert2014concreteness"))
    paper = GENECIS
    group = "triplet"
    verb = "mined from"
    unbounded = True
    reports = (MINING,)
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {
        **IMAGE_REASONS,
        **SAME_IMAGE,
        **reasons_beside(__file__, "genecis-triplets"),
    }
    scored: ClassVar[Mapping[str, str]] = {"concreteness": "mean of its words in the file of ratings (1-5)"}

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "annotations" in needs:
            check_installed(key, ("inflect",), "text")
            with naming(f"{key}.concreteness"):
                load_ratings(self.concreteness)

    version = 8
    candidate = TripletCandidate
    libraries = ("numpy", "pillow", "polars")

    def inputs(self) -> str:
        """Digest of the relations, of the ratings, and of the plurals that the published rules make of them or the
        concepts that the strict ones know."""
        words = version("inflect") if self.rules == "published" else sha256_of_file(CONCEPTS)[0]
        return digest([self.earlier().digest, sha256_of_file(self.concreteness)[0], words])

    def report_files(self) -> Mapping[str, bytes]:
        """``mining.json``: ``funnel``, how much is left of the captions at each step, in order."""
        pool = self._miner.pool
        funnel = {**pool.funnel, "references within reach of the threshold": len(pool.references)}
        return {MINING: json.dumps({"funnel": funnel}, ensure_ascii=False).encode() + b"\n"}  # in the order of steps

    def plan(self) -> Iterator[TripletCandidate]:
        """Mined triplets in the order of their draws; how many are taken does not change the first ones.

        Raises `WrongUse` when the scene graphs are not finished, or nothing can be mined from them.
        """
        import polars as pl

        draws = Draws(self.stage.seed, self.stage.name)
        stream = self._miner.stream(draws, None if self.rules == "published" else self.max_uses)
        blocks = 1
        # Texts of a million triplets take as long to look up as those of one: a pass over all captions.
        while tables := list(islice(stream, blocks)):
            blocks = min(2 * blocks, MOST_BLOCKS)
            table = pl.concat(tables)
            if not self.distractors:  # the published rules sample them all the same
                table = table.with_columns(distractor=pl.lit(None, table.schema["target"]))
            rows = self._miner.relations.rows(pl.concat([table[part] for part in PARTS]), *SAID, *TEXTS, *TERMS)
            parts = (
                table.select(row=part).join(rows, on="row", how="left", maintain_order="left").fill_null("")
                for part in PARTS
            )
            texts = zip(*(part.iter_rows(named=True) for part in parts), strict=True)
            for number, mean, parts_said in zip(table["number"], table["concreteness"], texts, strict=True):
                if mean is None:
                    self.excluded.add("no-triplet", f"draw {number}")
                else:
                    yield self._candidate(number, mean, parts_said)

    @cached_property
    def _scratch(self) -> TemporaryDirectory[str]:
        return TemporaryDirectory()

    @cached_property
    def _miner(self) -> Miner:
        from twinset.generators.triplets.published import PublishedRules
        from twinset.generators.triplets.relations import load_relations
        from twinset.generators.triplets.strict import StrictRules

        relations = load_relations(self.earlier(), Path(self._scratch.name))
        ratings, asked = load_ratings(self.concreteness), (self.threshold, self.min_images)
        if self.rules == "published":
            return PublishedRules(relations, with_plurals(ratings), *asked)
        return StrictRules(relations, ratings, *asked, self.min_support, self.distractors)

    def _candidate(self, number: int, mean: float, texts: Sequence[dict[str, str]]) -> TripletCandidate:
        """The triplet of a draw. texts: what each part says, "" for a distractor that is not asked for."""
        columns: dict[str, Any] = {f"{name}s": tuple(text[name] for text in texts) for name in (*SAID, *TEXTS)}
        columns["images"] = tuple(looked_for_by(text["image"], text["image_id"]) for text in texts)
        terms = [Terms.of(text) for text in texts if text["caption_id"]]
        return TripletCandidate(
            **self.identified(number, group=f"triplet-{number:07d}", shows=terms),
            number=number,
            condition=f"{texts[1]['predicate']} {texts[1]['object']}",  # of the target (GeneCIS, section 5.2)
            concreteness=mean,
            **columns,
        )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Triplet | Rejected]:
        """Triplets with their images, or why one has none: the reasons of `generators.image_files.ImageFiles.read`, and
        ``same-image`` where two of its images are one file or copies of it."""
        planned = cast(Sequence[TripletCandidate], candidates)
        read: Mapping[str, Frame | UnusableImage] = {}
        if self._images is not None:
            read = self._images.read(image for candidate in planned for image in candidate.media_names)
        for candidate in planned:
            images = [read.get(image) for image in candidate.images]
            if unusable := [image for image in images if isinstance(image, UnusableImage)]:
                yield unusable[0].rejected(candidate.key)
                continue
            frames = cast(list[Frame | None], images)
            sources = [frame.source for frame in frames if frame is not None]
            if len({source.sha256 for source in sources}) < len(sources):
                same = ", ".join(source.path for source in sources)
                yield Rejected(candidate.key, "same-image", f"two of {same} are one and the same")
            else:
                yield self._made(candidate, *frames)

    def _made(
        self, candidate: TripletCandidate, reference: Frame | None, target: Frame | None, distractor: Frame | None
    ) -> Triplet:
        columns = zip(candidate.subjects, candidate.predicates, candidate.objects, candidate.caption_ids, strict=True)
        relations: dict[str, Json] = {
            part: {"subject": subject, "predicate": predicate, "object": object_, "caption_id": caption}
            for part, (subject, predicate, object_, caption) in zip(PARTS, columns, strict=True)
        }
        return Triplet(
            **candidate.placed,
            condition=candidate.condition,
            reference=reference,
            target=target,
            distractor=distractor,
            captions=dict(zip(PARTS, candidate.captions, strict=True)),
            image_ids=dict(zip(PARTS, candidate.image_ids, strict=True)),
            provenance={"draw": candidate.number, "rules": self.rules, "seed": self.stage.seed, **relations},
            scores={"concreteness": candidate.concreteness},
        )
