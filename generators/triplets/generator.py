"""GeneCIS's training triplets: mined from the scene graphs of captions when planned, given their images when made."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from typing import cast

import numpy as np

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Frame, Json, Rejected
from twinset.contracts.kinds.triplet import PARTS, Triplet
from twinset.contracts.licences.terms import Terms
from twinset.generators.image_files import ImageFiles, UnusableImage, looked_for_by
from twinset.generators.triplets.captions import concepts
from twinset.generators.triplets.draws import NONE, Draws
from twinset.generators.triplets.graphs import Relations, load_relations
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.pool import Pool
from twinset.generators.triplets.ratings import load_ratings
from twinset.generators.triplets.report import make_report
from twinset.generators.triplets.source import MINING, Triplets
from twinset.shards.contracts import Context, Generator
from twinset.shards.finished_stage import FinishedStage

LOOKED_AT = 64  # triplets whose images' names tell whether the captions name any files


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


class TripletGenerator(Generator[Triplets]):
    """Triplets without end, of one set of captions; of each the images where the settings name them, else an index."""

    version = 7
    candidate = TripletCandidate
    libraries = ("numpy", "pillow")

    def __init__(self, source: Triplets, context: Context) -> None:
        super().__init__(source, context)
        self._images = ImageFiles(source.images, upright=True) if source.images is not None else None

    def inputs(self) -> str:
        """Digest of the relations, of the ratings, and of the plurals that the published rules make of them or the
        concepts that the strict ones know."""
        words = version("inflect") if self.source.rules == "published" else concepts().digest
        return digest([self._graphs.digest, sha256_of_file(self.source.concreteness)[0], words])

    def reports(self) -> Mapping[str, bytes]:
        """``mining.json`` (`generators.triplets.report.make_report`)."""
        ratings = load_ratings(self.source.concreteness, self.source.rules)
        report = make_report(self._relations, ratings, self.source, Draws(self.seed, self.name))
        return {MINING: json.dumps(report, ensure_ascii=False).encode() + b"\n"}  # in the order of steps

    def plan(self) -> Iterator[TripletCandidate]:
        """Mined triplets in the order of their draws; how many are taken does not change the first ones.

        Raises `WrongUse` when the scene graphs are not finished, or nothing can be mined from them.
        """
        source = self.source
        ratings = load_ratings(source.concreteness, source.rules)
        pool = Pool(self._relations, ratings, source.rules, source.min_images, source.min_support, source.balance)
        candidates = self._candidates(Miner(pool, source.threshold, source.distractors, source.max_unsaid))
        first = list(islice(candidates, LOOKED_AT))
        self._refuse_addresses(first)
        yield from first
        yield from candidates

    @cached_property
    def _graphs(self) -> FinishedStage:
        return self.context.earlier(self.source.graphs)

    @cached_property
    def _relations(self) -> Relations:
        return load_relations(self._graphs, judged=self.source.rules == "strict")

    def _candidates(self, miner: Miner) -> Iterator[TripletCandidate]:
        following, used = 0, set[int]()
        for table in miner.stream(Draws(self.seed, self.name), self.source.max_uses):
            used = {*table.used.tolist(), *(one for one in used if one >= following)}
            distractor = table.distractor if self.source.distractors else np.full_like(table.distractor, NONE)
            told = [self._relations.texts_of(part) for part in (table.reference, table.target, distractor)]
            for at, (number, mean) in enumerate(zip(table.number.tolist(), table.concreteness.tolist(), strict=True)):
                for missed in range(following, number):
                    if missed not in used:
                        self.excluded.add("no-triplet", f"draw {missed}")
                following = number + 1
                parts = {name: tuple(part[name][at] for part in told) for name in told[0]}
                yield TripletCandidate(
                    **self.identified(
                        number, group=f"triplet-{number:07d}", shows=list(map(Terms.unpacked, parts["terms"]))
                    ),
                    number=number,
                    condition=f"{parts['predicate'][1]} {parts['object'][1]}",  # of the target (GeneCIS, section 5.2)
                    concreteness=mean,
                    subjects=parts["subject"],
                    predicates=parts["predicate"],
                    objects=parts["object"],
                    caption_ids=parts["caption_id"],
                    captions=parts["caption"],
                    image_ids=parts["image_id"],
                    images=tuple(map(looked_for_by, parts["image"], parts["image_id"])),
                )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Triplet | Rejected]:
        """Triplets with their images, or why one has none: the reasons of `generators.image_files.ImageFiles.read`, and
        ``same-image`` where two of its images are one file or copies of it."""
        planned = cast(Sequence[TripletCandidate], candidates)
        read: Mapping[str, Frame | UnusableImage] = {}
        if self._images is not None:
            read = self._images.read(image for candidate in planned for image in candidate.images if image)
        for candidate in planned:
            yield self._made(candidate, [read.get(image) for image in candidate.images])

    def _refuse_addresses(self, first: Sequence[TripletCandidate]) -> None:
        """Raise `WrongUse` where images are asked for that none of the captions names a file of."""
        names = [name for candidate in first for name in candidate.images if name]
        if self.source.images is not None and names and all("://" in name for name in names):
            graphs, key = self.source.graphs, f"subsets.{self.name}.source"
            raise WrongUse(
                f"{key}.images: the captions of {graphs} name their images by address alone, such as {names[0]}; "
                "download them with img2dataset and name the folder of its tars as both "
                f"stages.{graphs}.source.captions and {key}.images, or leave images out for an index"
            )

    def _made(self, candidate: TripletCandidate, images: Sequence[Frame | UnusableImage | None]) -> Triplet | Rejected:
        if unusable := [image for image in images if isinstance(image, UnusableImage)]:
            return unusable[0].rejected(candidate.key)
        frames = cast(Sequence[Frame | None], images)
        digests = [frame.source.sha256 for frame in frames if frame is not None]
        if len(set(digests)) < len(digests):
            same = ", ".join(frame.source.path for frame in frames if frame is not None)
            return Rejected(candidate.key, "same-image", f"two of {same} are one and the same")
        reference, target, distractor = frames
        told = zip(candidate.subjects, candidate.predicates, candidate.objects, candidate.caption_ids, strict=True)
        relations: dict[str, Json] = {
            part: {"subject": subject, "predicate": predicate, "object": object_, "caption_id": caption}
            for part, (subject, predicate, object_, caption) in zip(PARTS, told, strict=True)
        }
        return Triplet(
            **candidate.placed,
            condition=candidate.condition,
            reference=reference,
            target=target,
            distractor=distractor,
            captions=dict(zip(PARTS, candidate.captions, strict=True)),
            images=dict(zip(PARTS, candidate.image_ids, strict=True)),
            provenance={"draw": candidate.number, "rules": self.source.rules, "seed": self.seed, **relations},
            scores={"concreteness": candidate.concreteness},
        )
