"""Settings of twins that are found: photographs whose captions differ in one word."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, digest, sha256_of_file
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.licences.terms import together
from twinset.contracts.locations import Location
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import MediaFolderPath, Need, Place
from twinset.generators.captions.tables import CAPTION_REASONS, Caption
from twinset.generators.image_files import IMAGE_REASONS, SAME_IMAGE, ImageFiles, looked_for_by
from twinset.generators.image_pairs import NamedPairCandidate, paired
from twinset.generators.mixing import mixed
from twinset.generators.reasons import reasons_beside
from twinset.generators.scene_graphs.source import ConfirmedCaptions
from twinset.generators.triplets.ratings import load_ratings
from twinset.shards.media.media_folder import ImageFolder, Media
from twinset_extras.caption_twins.choice import Limits, choose
from twinset_extras.caption_twins.roles import role_of
from twinset_extras.caption_twins.search import Bools, Captions, Twins, phrases_in, span_of, twins
from twinset_extras.caption_twins.vocabulary import vocabulary

RATED = ("object", "place", "attribute")


OTHER_ROLE = "other-role"


LOOKED_AT = 64  # pairs whose images' names tell whether the captions name any files


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinCandidate(NamedPairCandidate):
    """A pair whose captions differ in words of one set.

    words: of both captions, as the vocabulary has them. start: where they begin (`search.span_of`). set_name: theirs.
    """

    words: tuple[str, ...]
    start: int
    set_name: str

    @property
    def own(self) -> tuple[str, str]:
        """The two captions that differ."""
        return self.captions0[0], self.captions1[0]


def _why_none(captions: Captions) -> str:
    """What is wrong with captions without twins, and what to do."""
    many = len(captions.rows)
    if len(captions.of_photo) == 1:
        return "all captions are of one photograph; name captions of more images, with the image of each"
    if len(np.unique(captions.hashes)) == 1:
        return f"all {many} captions have the same words; is the column of captions the right one?"
    listed = len(np.unique(phrases_in(captions, vocabulary().phrases).caption))
    if listed < many / 2:
        return f"{listed} of {many} captions have a word of twins.yaml; are they in English?"
    return "no captions of two photographs differ in one word of twins.yaml alone; name more captions"


class CaptionTwins(ConfirmedCaptions):
    """Two photographs and a caption of each, which are the same but for one word or phrase of known kind.

    captions, pipeline, confirm: as `scene-graphs`; both pipelines must find the words in the same part of their
    captions. images: folder of the captions' images, or of tars of them; a plan needs none.
    concreteness: file of ratings (Brysbaert et al. 2014, tab-separated). threshold: that the ratings of both words
    reach, where they are objects, places or attributes.
    uses_of_image: pairs that a photograph is in, at most. uses_of_word: pairs that differ in a word, under any of its
    names, at most. uses_of_words: pairs that differ in the same two words, at most.
    licence: of captions and images.
    """

    kind: Literal["caption-twins"]
    images: MediaFolderPath
    concreteness: Annotated[Location, Place("file", "annotations")]
    threshold: float = Field(default=3, ge=1, lt=5)
    uses_of_image: int = Field(default=2, ge=1)
    uses_of_word: int = Field(default=500, ge=1)
    uses_of_words: int = Field(default=100, ge=1)
    licence: str = ""

    makes = "pair"
    reference = Reference("captions", bibtex=bibtex("brysbaert2014concreteness"))
    group = "photo set"
    verb = "found in"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {
        **CAPTION_REASONS,
        **IMAGE_REASONS,
        **SAME_IMAGE,
        **reasons_beside(__file__, "caption-twins"),
    }

    def media_files(self) -> Media:
        return ImageFolder(self.images)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "annotations" in needs:
            with naming(f"{key}.concreteness"):
                load_ratings(self.concreteness)

    version = 4
    candidate = TwinCandidate
    libraries: ClassVar[tuple[str, ...]] = (*ConfirmedCaptions.libraries, "pillow")

    def inputs(self) -> str:
        return digest([super().inputs(), sha256_of_file(self.concreteness)[0], vocabulary().digest])

    def plan(self) -> Iterator[TwinCandidate]:
        """Twins, group by group. Raises `WrongUse` where there is none."""
        captions, words = Captions(self.read_captions()), vocabulary()
        pairs = twins(captions, words, self._rated(), self._salt)
        limits = Limits(self.uses_of_image, self.uses_of_word, self.uses_of_words)
        drawn = captions.random(self._salt)[pairs.caption]
        groups = choose(pairs.photo, pairs.line, mixed(drawn[:, 0] ^ drawn[:, 1]), limits)
        if not groups:
            raise WrongUse(f"{', '.join(map(str, self.captions))}: {_why_none(captions)}")
        self._refuse_addresses([captions.rows[place] for place in pairs.caption[:LOOKED_AT, 0].tolist()])
        for rows in groups:
            group = ""
            for row in rows:
                candidate = self._planned(captions, pairs, row, group)
                group = group or candidate.key
                yield candidate

    def _refuse_addresses(self, captions: Sequence[Caption]) -> None:
        """Raise `WrongUse` where the captions name no file of any image."""
        names = [looked_for_by(caption.image, caption.image_id) for caption in captions]
        if all("://" in name for name in names):
            raise WrongUse(
                f"{', '.join(map(str, self.captions))}: name their images by address alone, such as {names[0]}; "
                "download them with img2dataset and name the folder of its tars as captions and images"
            )

    def _rated(self) -> Bools:
        """Whether the rating of each phrase is high enough, or not asked for."""
        words, ratings = vocabulary(), load_ratings(self.concreteness)
        pairs = zip(map(str.lower, words.phrases), map(str.lower, words.bases), strict=True)
        rating = np.array([ratings.get(word, ratings.get(base, np.nan)) for word, base in pairs])
        asked = np.array([any(words.lines[line].kind in RATED for line in named) for named in words.named])
        return np.asarray(~asked | (rating >= self.threshold))

    def _planned(self, captions: Captions, pairs: Twins, row: int, group: str) -> TwinCandidate:
        words = vocabulary()
        first, second = (captions.rows[place] for place in pairs.caption[row].tolist())
        texts = [
            [caption.caption, *(captions.rows[place].caption for place in captions.of_photo[photo])]
            for caption, photo in zip((first, second), pairs.photo[row].tolist(), strict=True)
        ]
        shown = together([caption.terms.filled(self.terms) for caption in (first, second)])
        phrases = tuple(words.phrases[phrase] for phrase in pairs.phrase[row].tolist())
        line = words.lines[pairs.line[row, 0]]
        about = {"kind": line.kind, "set": line.set_name, "word0": phrases[0], "word1": phrases[1]}
        for side, caption in enumerate((first, second)):
            about |= {f"caption_id{side}": caption.caption_id, f"image_id{side}": caption.image_id}
        return TwinCandidate(
            **self.identified(first.caption_id, second.caption_id, terms=shown, group=group),
            captions0=tuple(dict.fromkeys(texts[0])),
            captions1=tuple(dict.fromkeys(texts[1])),
            image0=looked_for_by(first.image, first.image_id),
            image1=looked_for_by(second.image, second.image_id),
            change=line.kind,
            provenance=canonical_json(about).decode(),
            words=phrases,
            start=int(pairs.start[row]),
            set_name=line.set_name,
        )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs with their images, or why one has none; ``other-role`` where a parse contradicts."""
        planned = cast(Sequence[TwinCandidate], candidates)
        agreed = self.agreed(planned)
        used = (name for pair, good in zip(planned, agreed, strict=True) if good for name in (pair.image0, pair.image1))
        read = self._images.read(used)
        for pair, good in zip(planned, agreed, strict=True):
            yield paired(pair, read) if good else Rejected(pair.key, OTHER_ROLE, " / ".join(pair.words))

    def agreed(self, planned: Sequence[TwinCandidate]) -> list[bool]:
        """Whether the words of each pair play the same part in both captions, by each parser."""
        sides = [(text, word, pair) for pair in planned for text, word in zip(pair.own, pair.words, strict=True)]
        agreed = [True] * len(planned)
        for parser in filter(None, (self.parser, self.second_parser)):
            with parser.nlp.memory_zone():
                docs = parser.docs(text for text, _, _ in sides)
                roles = [
                    role_of(doc, *span_of(doc.text, word, pair.start), pair.change, pair.set_name)
                    for doc, (_, word, pair) in zip(docs, sides, strict=True)
                ]
            for number, (role0, role1) in enumerate(zip(roles[::2], roles[1::2], strict=True)):
                agreed[number] = agreed[number] and role0 is not None and role0 == role1
        return agreed

    @property
    def _salt(self) -> np.uint64:
        """What depends on the seed of the recipe."""
        hashed = hashlib.blake2b(canonical_json(["twins", self.stage.seed, self.stage.name]), digest_size=8).digest()
        return np.uint64(int.from_bytes(hashed, "big"))

    @cached_property
    def _images(self) -> ImageFiles:
        return ImageFiles(self.images, upright=True)
