"""Plans a pair a negative caption from the tables and images of earlier stages, and makes it of photo and image."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from generators.generated_pairs.choosing import choose
from generators.generated_pairs.source import GeneratedPairs
from generators.image_files import ImageFiles, UnusableImage, rgb
from generators.negative_captions.kinds import COLUMNS, kind_name
from manifests.candidate import Candidate, CaptionedCandidate
from manifests.canonical import digest, identity_of, sample_key
from manifests.errors import WrongUse
from shards.contracts import Generator, LeftOut
from shards.earlier import Earlier
from shards.kinds.kind import Stored
from shards.kinds.pair import Pair
from shards.kinds.samples import Frame, Rejected, Source
from shards.media.decode import decode

UNSCORED = -1.0
_IMAGES = ("key", "identity", "tar", "caption", "image_sha256")


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedPairCandidate(CaptionedCandidate):
    """A negative caption with the image that was chosen for it.

    caption_id, image_id, type, subtype: of the negative caption. photo: name of image 0 in the folder of photos; empty
    where it is generated too. tar0, key0: where such an image 0 lies in the stage of images. tar1, key1: image 1.
    number: of image 1 among those of its caption. score, score_original: how well image 1 shows its own and the
    original caption; `UNSCORED` without verification.
    """

    caption_id: str
    image_id: str
    type: str
    subtype: str
    photo: str
    tar0: str
    key0: str
    tar1: str
    key1: str
    number: int
    score: float
    score_original: float

    @property
    def counted_as(self) -> str:
        """As `Candidate.counted_as`: the kind of the negative caption."""
        return kind_name(self.type, self.subtype)


@dataclass(frozen=True, slots=True)
class _Image:
    """An image of the earlier stage that was chosen."""

    tar: str
    key: str
    number: int
    score: float = UNSCORED
    score_original: float = UNSCORED


class GeneratedPairGenerator(Generator[GeneratedPairs]):
    """One pair a negative caption; those of a photo are a group."""

    version = 1
    candidate = GeneratedPairCandidate
    libraries = ("numpy", "pillow")

    def inputs(self) -> str:
        """Digest of the earlier stages."""
        return digest([self.context.earlier(one).digest for one in self.source.reads])

    def plan(self) -> Iterator[GeneratedPairCandidate]:
        """Pairs photo by photo, in the order in which negative captions first name them.

        Raises `WrongUse` when an earlier stage is of another kind, or draws one side where both are needed.
        """
        self.excluded = LeftOut()
        chosen, ambiguous = self._chosen()
        originals = {} if self.source.photos is not None else self._originals()
        by_photo: dict[str, list[GeneratedPairCandidate]] = {}
        for batch in self.context.earlier(self.source.negatives).batches(["key", "identity", *COLUMNS.names]):
            for row in batch.to_pylist():
                if problem := self._problem(row, chosen, ambiguous, originals):
                    self.excluded.add(problem, f"{row['key']} ({row['caption_id'][:100]})")
                    continue
                planned = self._planned(row, chosen[row["identity"]], originals.get(row["identity"]))
                by_photo.setdefault(planned.group, []).append(planned)
        for same in by_photo.values():
            yield from same

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs, or why there is none.

        Raises:
            BrokenTar: a generated image is absent or broken.
        """
        planned = cast(Sequence[GeneratedPairCandidate], candidates)
        photos = self._photos.read(one.photo for one in planned) if self._photos is not None else {}
        generated = self._generated(planned)
        for one in planned:
            first = photos[one.photo] if one.photo else generated[one.key0][0]
            second, stored = generated[one.key1]
            if isinstance(first, UnusableImage):
                yield first.rejected(one.key)
            elif np.array_equal(first.pixels, second.pixels):
                yield Rejected(one.key, "same-image", f"{first.source.path} and {second.source.path} are the same")
            else:
                yield self._pair(one, first, second, stored)

    def _pair(self, one: GeneratedPairCandidate, first: Frame, second: Frame, stored: Stored[Any]) -> Pair:
        scores = {"verification": one.score, "verification_original": one.score_original}
        told = {name: getattr(one, name) for name in ("caption_id", "image_id", "type", "subtype", "photo", "number")}
        drawn = {name: value for name, value in stored.json.provenance.items() if name not in told}
        return Pair(
            key=one.key,
            group=one.group,
            split=one.split,
            change=f"{one.type} {one.subtype}".strip(),
            image0=first,
            image1=second,
            captions0=one.captions0,
            captions1=one.captions1,
            scores={name: value for name, value in scores.items() if value != UNSCORED},
            provenance={**told, "choice": "first" if self.source.verified is None else "score", "generated": drawn},
        )

    def _generated(self, planned: Sequence[GeneratedPairCandidate]) -> dict[str, tuple[Frame, Stored[Any]]]:
        """Frame and stored sample of each generated image, by its key; each tar is read once."""
        wanted: dict[str, set[str]] = {}
        for one in planned:
            wanted.setdefault(one.tar1, set()).add(one.key1)
            if not one.photo:
                wanted.setdefault(one.tar0, set()).add(one.key0)
        found = {}
        for tar, keys in wanted.items():
            for key, stored in self._images.samples(tar, keys).items():
                content = stored.images["image"]
                # A URL: the stage vouches for its images, which lie in no folder of media.
                path = f"stage://{self._images.stage.name}/{tar}/{key}.{stored.extension}"
                source = Source(path, len(content), hashlib.sha256(content).hexdigest())
                found[key] = Frame(key, rgb(decode(content, key)), -1.0, source), stored
        return found

    def _planned(self, row: Mapping[str, str], image: _Image, original: _Image | None) -> GeneratedPairCandidate:
        photo = "" if original is not None else row["image"] or row["image_id"]
        identity = json.loads(row["identity"])
        return GeneratedPairCandidate(
            key=sample_key(self.name, *identity),
            identity=identity_of(*identity),
            group=sample_key(self.name, "image", photo) if photo else sample_key(self.name, *identity),
            split=self.split,
            captions0=(row["caption"],),
            captions1=(row["negative_caption"],),
            **{name: row[name] for name in ("caption_id", "image_id", "type", "subtype")},
            photo=photo,
            tar0=original.tar if original is not None else "",
            key0=original.key if original is not None else "",
            tar1=image.tar,
            key1=image.key,
            number=image.number,
            score=image.score,
            score_original=image.score_original,
        )

    def _problem(
        self, row: Mapping[str, str], chosen: Mapping[str, _Image], ambiguous: set[str], originals: Mapping[str, _Image]
    ) -> str:
        """Why a negative caption gives no pair; empty when it does."""
        if row["identity"] in ambiguous:
            return "ambiguous"
        if row["identity"] not in chosen:
            return "no-image" if self.source.verified is None else "not-verified"
        if self.source.photos is None:
            return "" if row["identity"] in originals else "no-image"
        return "" if row["image"] or row["image_id"] else "no-photo"

    def _chosen(self) -> tuple[dict[str, _Image], set[str]]:
        """The image of each negative caption by the caption's identity, and the captions that are ambiguous."""
        images = self._of_side("negative_caption")
        if self.source.verified is None:
            first: dict[str, _Image] = {}
            for group, image in images:
                if group not in first or image.number < first[group].number:
                    first[group] = image
            return first, set()
        table = self.context.earlier(self.source.verified).read(["image_key", "caption_score", "original_score"])
        scores = dict(zip(*(table[name].to_pylist() for name in ("image_key", "caption_score")), strict=True))
        others = dict(zip(*(table[name].to_pylist() for name in ("image_key", "original_score")), strict=True))
        scored = [
            (group, replace(image, score=scores[image.key], score_original=_number(others[image.key])))
            for group, image in images
            if image.key in scores
        ]
        groups = [group for group, _ in scored]
        result = choose(
            groups,
            np.array([image.score for _, image in scored]),
            np.array([np.nan if image.score_original == UNSCORED else image.score_original for _, image in scored]),
            np.array([image.number for _, image in scored], np.int64),
            self.source.ambiguous,
            self.source.compared,
        )
        kept = {group: image for (group, image), taken in zip(scored, result.chosen, strict=True) if taken}
        return kept, {group for group, dropped in zip(groups, result.ambiguous, strict=True) if dropped}

    def _originals(self) -> dict[str, _Image]:
        """The image that was generated from the original caption, by the identity of the negative caption."""
        found = dict(reversed(self._of_side("caption")))
        if not found:
            raise WrongUse(
                f"{self._images.where}: holds no image of an original caption; name a folder with photos, or set "
                "sides of its source to [caption, negative_caption]"
            )
        return found

    def _of_side(self, side: str) -> list[tuple[str, _Image]]:
        """Images that were generated from the captions of a side, each with the identity of its negative caption."""
        said = self.context.earlier(self.source.negatives).read(["identity", side])
        captions = dict(zip(said["identity"].to_pylist(), said[side].to_pylist(), strict=True))
        found = []
        for row in self._images.read(_IMAGES).to_pylist():
            *identity, drawn_side, number = json.loads(row["identity"])
            negative = identity_of(*identity)
            if drawn_side != side or captions.get(negative) != row["caption"]:
                continue
            if not row["image_sha256"]:
                raise WrongUse(f"{self._images.where}: {row['key']} has no image; name a stage that draws")
            found.append((negative, _Image(row["tar"], row["key"], int(number))))
        return found

    @cached_property
    def _images(self) -> Earlier:
        return self.context.earlier(self.source.images)

    @cached_property
    def _photos(self) -> ImageFiles | None:
        return None if self.source.photos is None else ImageFiles(self.source.photos, upright=True)


def _number(value: float | None) -> float:
    return UNSCORED if value is None else float(value)
