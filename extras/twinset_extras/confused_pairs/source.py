"""Settings of pairs that one encoder confuses and another does not."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, Rejected
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.image_files import rgb
from twinset.generators.neighbours.table import read_features
from twinset.generators.reasons import reasons_beside
from twinset.shards.contracts import Source
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.decode import decode
from twinset.shards.storage.tar_reader import BrokenTar
from twinset_extras.caption_twins.choice import Groups

Floats = NDArray[np.float32]


Pairs = NDArray[np.int64]


BLOCK = 2048  # rows whose products are held together: 16 MiB


LOT = 4096  # pairs that are float64 at a time


MOST = 10_000_000  # pairs that are held


class TooMany(Exception):
    """More than `MOST` pairs are above the threshold."""


def cosines(features: Floats, pairs: Pairs) -> NDArray[np.float64]:
    """x·y of each pair of rows of norm 1.

    Products of float32 are exact in float64, and the order of their sum is fixed: the same bits on every machine.
    """
    sums = np.empty(len(pairs))
    for start in range(0, len(pairs), LOT):
        lot = pairs[start : start + LOT]
        terms = features[lot[:, 0]].astype(np.float64) * features[lot[:, 1]]
        while (width := terms.shape[1]) > 1:  # the second half is added to the first
            half = (width + 1) // 2
            terms[:, : width - half] += terms[:, half:]
            terms = terms[:, :half]
        sums[start : start + LOT] = terms[:, 0]
    return sums


def alike(features: Floats, above: float) -> tuple[Pairs, NDArray[np.float64]]:
    """Pairs of rows i < j with a cosine above a threshold, in order, and their cosines; the same on every machine.

    Args:
        features: of norm 1, shape (n, d).

    Raises:
        TooMany: there are more than `MOST`.
    """
    least = above - features.shape[1] * np.finfo(np.float32).eps  # float32 is off by less
    parts, held = [(np.empty((0, 2), np.int64), np.empty(0))], 0
    for first in range(0, len(features), BLOCK):
        for second in range(first, len(features), BLOCK):
            products = features[first : first + BLOCK] @ features[second : second + BLOCK].T
            pairs = np.argwhere(products >= least) + np.array([first, second])
            pairs = pairs[pairs[:, 0] < pairs[:, 1]]
            near = cosines(features, pairs)
            good = near > above
            parts.append((pairs[good], near[good]))
            held += int(good.sum())
            if held > MOST:
                raise TooMany
    pairs, near = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return pairs[order], near[order]


Row = Mapping[str, Any]


COLUMNS = ("key", "tar", "split", "image_id", "captions", "image_sha256", *TERMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusedCandidate(CaptionedCandidate):
    """A pair of photographs.

    tars, keys: where they lie in their stage. image_ids: theirs; image_sha256s: of their files. alike, apart: cosines
    by both encoders.
    """

    tars: tuple[str, ...]
    keys: tuple[str, ...]
    image_ids: tuple[str, ...]
    image_sha256s: tuple[str, ...]
    alike: float
    apart: float


class ConfusedPairs(Source):
    """Two photographs with their captions that one encoder finds alike and another apart (MMVP, section 2).

    images: the stage of ``image-captions`` that has the photographs, or the folder of a finished one. alike, apart: two
    stages of ``image-features`` of it, one an encoder. above: cosines in the first are above this; below: those in the
    second are below this. Pairs with the largest difference come first; those that photographs connect are 64 at most.
    uses_of_image: pairs that a photograph is in, at most. licence: of captions and images.
    """

    kind: Literal["confused-pairs"]
    images: StageName
    alike: StageName
    apart: StageName
    above: float = Field(default=0.95, gt=-1, lt=1)
    below: float = Field(default=0.6, gt=-1, le=1)
    uses_of_image: int = Field(default=2, ge=1)
    licence: str = ""

    makes = "pair"
    paper = Reference("MMVP", "https://arxiv.org/abs/2401.06209", bibtex("tong2024mmvp"))
    group = "cluster"
    verb = "found in"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "confused-pairs")
    scored: ClassVar[Mapping[str, str]] = {
        "alike": "cosine of both photographs' features by the encoder that finds them alike",
        "apart": "cosine of both photographs' features by the encoder that tells them apart",
    }

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes == "image-text" or earlier.kind == "image-features":
            return ""
        return (
            f"{earlier.kind} gives neither photographs with captions nor features; name stages of image-captions and "
            "image-features"
        )

    version = 1
    candidate = ConfusedCandidate
    libraries = ("numpy", "pillow")
    micro_batch: ClassVar[int] = 32  # pairs that are made together: their photographs are looked for in each tar once

    def inputs(self) -> str:
        return digest([self.stage.earlier(name).digest for name in self.reads])

    def plan(self) -> Iterator[ConfusedCandidate]:
        """Pairs, group by group.

        Raises `WrongUse`: the stages are of different images, there is no pair, or too many are alike.
        """
        names, pairs, near, far = self._found()
        photographs = self._photographs([names[place] for place in np.unique(pairs)])
        split = {photo["image_sha256"]: photo["split"] for photo in photographs.values()}
        groups, uses = Groups(), Counter[int]()
        taken = list[int]()
        for at in np.argsort(far - near, kind="stable").tolist():
            left, right = pairs[at].tolist()
            reason = ""
            if split[names[left]] != split[names[right]]:
                reason = "other-split"
            elif max(uses[left], uses[right]) >= self.uses_of_image:
                reason = "used-often"
            elif not groups.joined(left, right):
                reason = "large-group"
            if reason:
                self.excluded.add(reason, " and ".join(photographs[names[each]]["image_id"] for each in (left, right)))
                continue
            uses.update((left, right))
            taken.append(at)
        grouped: dict[int, list[int]] = {}
        for at in taken:
            grouped.setdefault(groups.root(int(pairs[at, 0])), []).append(at)
        for places in grouped.values():
            group = ""
            for at in places:
                rows = [photographs[names[place]] for place in pairs[at].tolist()]
                candidate = self._planned(rows, float(near[at]), float(far[at]), group)
                group = group or candidate.key
                yield candidate

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs with their photographs.

        Raises `BrokenTar`: a photograph is absent, broken or not the one that was planned.
        """
        planned = cast(Sequence[ConfusedCandidate], candidates)
        places = {key: tar for pair in planned for tar, key in zip(pair.tars, pair.keys, strict=True)}
        stored = self._images.samples((tar, key) for key, tar in places.items())
        for pair in planned:
            # Decoded pair by pair: 64 photographs in pixels may be gigabytes.
            frames = [
                self._frame(places[key], key, stored[key].images["image"], sha256)
                for key, sha256 in zip(pair.keys, pair.image_sha256s, strict=True)
            ]
            yield Pair(
                **pair.placed,
                change="photograph",
                image0=frames[0],
                image1=frames[1],
                scores={"alike": pair.alike, "apart": pair.apart},
                provenance={f"image_id{side}": name for side, name in enumerate(pair.image_ids)},
            )

    def _planned(self, rows: Sequence[Row], near: float, far: float, group: str) -> ConfusedCandidate:
        rows = sorted(rows, key=lambda row: str(row["image_id"]))
        identified = self.identified(*(row["image_id"] for row in rows), group=group, shows=list(map(Terms.of, rows)))
        identified["split"] = rows[0]["split"]
        captions = [tuple(json.loads(row["captions"])) for row in rows]
        return ConfusedCandidate(
            **identified,
            captions0=captions[0],
            captions1=captions[1],
            tars=tuple(row["tar"] for row in rows),
            keys=tuple(row["key"] for row in rows),
            image_ids=tuple(row["image_id"] for row in rows),
            image_sha256s=tuple(row["image_sha256"] for row in rows),
            alike=near,
            apart=far,
        )

    def _frame(self, tar: str, key: str, content: bytes, sha256: str) -> Frame:
        where = f"stage://{self._images.stage.name}/{tar}/{key}"
        source = MediaFile(where, len(content), hashlib.sha256(content).hexdigest())
        if source.sha256 != sha256:
            raise BrokenTar(f"{where} is not what was planned from; run this build again")
        return Frame(key, rgb(decode(content, where)), -1.0, source)

    def _found(self) -> tuple[list[str], Pairs, NDArray[np.float64], NDArray[np.float64]]:
        """sha256s of all images, pairs of their places, and the cosines of each pair by both encoders."""
        source, first, second = self, *map(self.stage.earlier, (self.alike, self.apart))
        places = {
            sha256: place for place, sha256 in enumerate(second.read(["image_sha256"])["image_sha256"].to_pylist())
        }
        names, features = read_features(first)
        self._refuse_others(first, names, second, places)
        try:
            pairs, near = alike(features, source.above)
        except TooMany:
            raise WrongUse(
                f"{first.where}: more than {MOST:,} pairs of images have a cosine above {source.above:g}; set a higher "
                "source.above, or name another encoder as alike"
            ) from None
        del features
        place = np.array([places.get(name, -1) for name in names])[pairs]
        in_both = (place >= 0).all(axis=1)
        pairs, near, place = pairs[in_both], near[in_both], place[in_both]
        chosen = np.zeros(len(places), np.bool_)
        chosen[place] = True
        far = cosines(read_features(second, chosen)[1], (np.cumsum(chosen) - 1)[place])
        good = far < source.below
        if not good.any():
            raise WrongUse(
                f"{first.where}, {second.where}: none of {len(pairs):,} pairs of images with a cosine above "
                f"{source.above:g} in the first has one below {source.below:g} in the second; set a lower source.above "
                "or a higher source.below, or name other encoders or more images"
            )
        return names, pairs[good], near[good], far[good]

    def _refuse_others(
        self, first: FinishedStage, names: Sequence[str], second: FinishedStage, places: Mapping[str, int]
    ) -> None:
        """Raise `WrongUse` where a stage lacks images of the other one, but those that its own encoder failed at."""
        known = {*names}
        for stage, lacking, where in ((second, known - places.keys(), first), (first, places.keys() - known, second)):
            failed = {json.loads(identity)[0] for identity in stage.rejected(["identity"])["identity"].to_pylist()}
            if lost := sorted(lacking - failed):
                raise WrongUse(
                    f"{stage.where}: has no features of {len(lost):,} images of {where.where}, such as {lost[0]}; name "
                    "two stages of image-features that read the same images"
                )

    def _photographs(self, wanted: Sequence[str]) -> dict[str, Row]:
        """The first row of each wanted image in the stage of photographs, by sha256."""
        known, photographs = {*wanted}, dict[str, Row]()
        for batch in self._images.batches(COLUMNS):
            for row in batch.to_pylist():
                if row["image_sha256"] in known:
                    photographs.setdefault(row["image_sha256"], row)
        if lost := sorted(known - photographs.keys()):
            raise WrongUse(
                f"{self._images.where}: lacks {len(lost):,} images of {self.alike}, such as {lost[0]}; name the "
                "stage of photographs that the features were made of as source.images"
            )
        return photographs

    @cached_property
    def _images(self) -> FinishedStage:
        return self.stage.earlier(self.images)
