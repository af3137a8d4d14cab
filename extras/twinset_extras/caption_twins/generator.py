"""Finds twins among all captions when planned; parses them and reads their images when made."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, digest, mixed, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.licences.terms import Terms, together
from twinset.generators.captions.training_split import TRAIN, TrainingSplit, joined
from twinset.generators.image_files import ImageFiles, looked_for_by
from twinset.generators.named_pairs import NamedPairCandidate, paired
from twinset.generators.scene_graphs.source import ConfirmedCaptionGenerator
from twinset.generators.triplets.draws import Bools, Codes
from twinset.generators.triplets.ratings import load_ratings
from twinset_extras.caption_twins.choice import Limits, choose
from twinset_extras.caption_twins.columns import Captions, span_of
from twinset_extras.caption_twins.neighbours import Twins, phrases_in, twins
from twinset_extras.caption_twins.roles import role_of
from twinset_extras.caption_twins.source import CaptionTwins
from twinset_extras.caption_twins.vocabulary import vocabulary

RATED = ("object", "place", "attribute")
OTHER_ROLE = "other-role"
COLUMNS = ("caption", "caption_id", "image_id", "image")
LOOKED_AT = 64  # pairs whose images' names tell whether the captions name any files
SLICE = 4096  # pairs that are Python objects at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinCandidate(NamedPairCandidate):
    """A pair whose captions differ in words of one set.

    words: of both captions, as the vocabulary has them. start: where they begin (`columns.span_of`). set_name: theirs.
    """

    words: tuple[str, ...]
    start: int
    set_name: str

    @property
    def own(self) -> tuple[str, str]:
        """The two captions that differ."""
        return self.captions0[0], self.captions1[0]


class CaptionTwinGenerator(ConfirmedCaptionGenerator[CaptionTwins]):
    """Twins of one set of captions; those that have photographs in common are a group."""

    version = 3
    candidate = TwinCandidate
    libraries = (*ConfirmedCaptionGenerator.libraries, "pillow")

    def inputs(self) -> str:
        read = [super().inputs(), sha256_of_file(self.source.concreteness)[0], vocabulary().digest]
        return joined(digest(read), self._training)

    def plan(self) -> Iterator[TwinCandidate]:
        """Twins, group by group. Raises `WrongUse` where there is none."""
        self._training.check(self.name)
        captions, words = Captions(self.captions()), vocabulary()
        found = twins(captions, words, self._rated(), self._salt)
        photos, at = np.unique(found.photo, return_inverse=True)
        trained = self._trained(captions, photos)[at.reshape(-1, 2)]
        found = found.take(trained[:, 0] == trained[:, 1])
        limits = Limits(self.source.uses_of_image, self.source.uses_of_word, self.source.uses_of_words)
        drawn = captions.random(self._salt)[found.caption]
        groups = choose(found.photo, found.line, mixed(drawn[:, 0] ^ drawn[:, 1]), limits)
        if not groups:
            raise WrongUse(f"{', '.join(map(str, self.source.captions))}: {_why_none(captions)}")
        self._refuse_addresses(captions, found)
        numbers = [number for number, group in enumerate(groups) for _ in group]
        yield from self._candidates(captions, found.take(np.concatenate(list(map(np.array, groups)))), numbers)

    def _refuse_addresses(self, captions: Captions, found: Twins) -> None:
        """Raise `WrongUse` where the captions name no file of any image."""
        names = list(
            map(looked_for_by, *(captions.column(name, found.caption[:LOOKED_AT, 0]) for name in COLUMNS[:1:-1]))
        )
        if all("://" in name for name in names):
            raise WrongUse(
                f"{', '.join(map(str, self.source.captions))}: name their images by address alone, such as {names[0]}; "
                "download them with img2dataset and name the folder of its tars as captions and images"
            )

    def _rated(self) -> Bools:
        """Whether the rating of each phrase is high enough, or not asked for."""
        words, ratings = vocabulary(), load_ratings(self.source.concreteness, "strict")
        rating = ratings.strict_of(words.phrases, words.bases)
        asked = np.array([any(words.lines[line].kind in RATED for line in named) for named in words.named])
        return np.asarray(~asked | (rating >= self.source.threshold))

    def _trained(self, captions: Captions, photos: Codes) -> Bools:
        """Whether photos are in `TRAIN`: those that are by each of their ids."""
        if self.source.train is None:
            return np.zeros(len(photos), dtype=np.bool_)
        ids, images = (captions.of_photos(name, photos) for name in ("image_id", "image"))
        named = (set(zip(*both, strict=True)) for both in zip(ids, images, strict=True))
        return np.array([all(self._training.of(*one) == TRAIN for one in names) for names in named], np.bool_)

    def _candidates(self, captions: Captions, found: Twins, groups: Sequence[int]) -> Iterator[TwinCandidate]:
        """A candidate a pair, in order. groups: the number of each pair's."""
        words, last, group = vocabulary(), -1, ""
        for start in range(0, len(found), SLICE):
            some = found.take(np.arange(start, min(start + SLICE, len(found))))
            texts, ids, image_ids, images, terms = (
                captions.column(name, some.caption.ravel()) for name in (*COLUMNS, "terms")
            )
            others, trained = (
                captions.of_photos("caption", some.photo.ravel()),
                self._trained(captions, some.photo[:, 0]),
            )
            for row in range(len(some)):
                one, other = 2 * row, 2 * row + 1
                shown = [Terms.unpacked(terms[place]).filled(self.source.terms) for place in (one, other)]
                identified = self.identified(ids[one], ids[other], terms=together(shown))
                if groups[start + row] != last:
                    last, group = groups[start + row], identified["key"]
                identified["group"] = group
                identified["split"] = TRAIN if trained[row] else self.split
                phrases = tuple(words.phrases[phrase] for phrase in some.phrase[row].tolist())
                line = words.lines[some.line[row, 0]]
                about = {"kind": line.kind, "set": line.set_name, "word0": phrases[0], "word1": phrases[1]}
                for side, place in enumerate((one, other)):
                    about |= {f"caption_id{side}": ids[place], f"image_id{side}": image_ids[place]}
                yield TwinCandidate(
                    **identified,
                    captions0=tuple(dict.fromkeys((texts[one], *others[one]))),
                    captions1=tuple(dict.fromkeys((texts[other], *others[other]))),
                    image0=looked_for_by(images[one], image_ids[one]),
                    image1=looked_for_by(images[other], image_ids[other]),
                    change=line.kind,
                    provenance=canonical_json(about).decode(),
                    words=phrases,
                    start=int(some.start[row]),
                    set_name=line.set_name,
                )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs with their images, or why one has none; ``other-role`` where a parse contradicts."""
        planned = cast(Sequence[TwinCandidate], candidates)
        agreed = self.agreed(planned)
        names = (name for one, good in zip(planned, agreed, strict=True) if good for name in (one.image0, one.image1))
        read = self._images.read(names)
        for one, good in zip(planned, agreed, strict=True):
            yield paired(one, read) if good else Rejected(one.key, OTHER_ROLE, " / ".join(one.words))

    def agreed(self, planned: Sequence[TwinCandidate]) -> list[bool]:
        """Whether the words of each pair play the same part in both captions, by each parser."""
        sides = [(text, word, one) for one in planned for text, word in zip(one.own, one.words, strict=True)]
        agreed = [True] * len(planned)
        for parser in filter(None, (self.parser, self.second_parser)):
            with parser.nlp.memory_zone():
                docs = parser.docs(text for text, _, _ in sides)
                roles = [
                    role_of(doc, *span_of(doc.text, word, one.start), one.change, one.set_name)
                    for doc, (_, word, one) in zip(docs, sides, strict=True)
                ]
            for number, both in enumerate(zip(roles[::2], roles[1::2], strict=True)):
                agreed[number] = agreed[number] and both[0] is not None and both[0] == both[1]
        return agreed

    @property
    def _salt(self) -> np.uint64:
        """What depends on the seed of the recipe."""
        hashed = hashlib.blake2b(canonical_json(["twins", self.seed, self.name]), digest_size=8).digest()
        return np.uint64(int.from_bytes(hashed, "big"))

    @cached_property
    def _training(self) -> TrainingSplit:
        return TrainingSplit(self.source.train, self.split, self.seed, self.source.held_out)

    @cached_property
    def _images(self) -> ImageFiles:
        return ImageFiles(self.source.images, upright=True)


def _why_none(captions: Captions) -> str:
    """What is wrong with captions without twins, and what to do."""
    if captions.photos == 1:
        return "all captions are of one photograph; name captions of more images, with the image of each"
    if len(np.unique(captions.hashes)) == 1:
        return f"all {len(captions)} captions have the same words; is the column of captions the right one?"
    listed = len(np.unique(phrases_in(captions, vocabulary().phrases).caption))
    if listed < len(captions) / 2:
        return f"{listed} of {len(captions)} captions have a word of twins.yaml; are they in English?"
    return "no captions of two photographs differ in one word of twins.yaml alone; name more captions"
