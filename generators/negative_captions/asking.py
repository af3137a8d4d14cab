"""Sources that ask a language model about captions, by prompts that are a setting, and with the photo where it sees."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar, cast

from PIL import Image
from pydantic import model_validator

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.locations import Location
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Need, Place
from twinset.generators.image_files import IMAGE_REASONS, ImageFiles, UnusableImage, looked_for_by
from twinset.generators.negative_captions.instructions import (
    FIELD,
    Instructions,
    Judged,
    instructions,
    judged,
    schema_of,
)
from twinset.generators.negative_captions.kinds import NegativeCandidate, NegativeCaption
from twinset.models.engines import EngineGenerator, EngineSource
from twinset.models.language_models.answers import EncodedImage, LanguageModel, Request
from twinset.models.language_models.settings import LanguageModelSettings
from twinset.shards.contracts import Context
from twinset.shards.media.media_folder import ImageFolder, Media

SIDE, QUALITY = 768, 90  # of the photo as it is sent: pixels of the longer side, JPEG
SEEN = 512  # photos at a time, which memory holds as they are sent


class PromptedSource(EngineSource):
    """What a language model is asked.

    prompts: YAML file of what a language model is asked, in the form of
    ``manifests/vocabularies/negative_prompts.yaml``, which is the default. photos: folder of the captions' images, or
    of tars of them, which the engine then sees; it sees none when absent.
    """

    prompts: Annotated[Location, Place("file", "annotations")] | None = None
    photos: Annotated[Location, Place("folder", "media")] | None = None

    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, **reasons_beside(__file__, "answers", "engines", "photos")}

    @property
    def asked_for(self) -> Sequence[str]:
        """Kinds of captions that are asked for."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _sees(self) -> PromptedSource:
        if self.photos is not None and not (isinstance(self.engine, LanguageModelSettings) and self.engine.sees):
            raise ValueError(f"photos: {self.engine.kind} sees none; name openai or vlm as engine, or leave photos out")
        return self

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if self.prompts is not None and "annotations" in needs:
            with naming(f"{key}.prompts"):
                asked_by(self)

    def media_files(self) -> Media | None:
        return ImageFolder(self.photos) if self.photos is not None else None


def asked_by(source: PromptedSource) -> Instructions:
    """What its language model is asked.

    Raises `WrongUse`: the file of prompts is not one, or lacks a kind; or its answers are no JSON, which the engine
    would hold them to.
    """
    found = instructions(None if source.prompts is None else Path(source.prompts))
    if lacking := [kind for kind in source.asked_for if kind not in found.prompts.kinds]:
        raise WrongUse(f"{source.prompts}: has no prompt of {lacking[0]}; add it, or ask for other kinds")
    marked = [kind for kind in source.asked_for if found.prompts.kinds[kind].answer_after]
    if marked and getattr(source.engine, "answer_format", "text") != "text":
        raise WrongUse(f"{source.prompts}: answers of {marked[0]} are no JSON; set engine.answer_format to text")
    return found


P = TypeVar("P", bound=PromptedSource)


class PromptedGenerator(EngineGenerator[P]):
    """Asks a language model, one request a caption and kind."""

    engine: LanguageModel

    def __init__(self, source: P, context: Context) -> None:
        super().__init__(source, context)
        if source.photos is not None:
            self.micro_batch = min(self.micro_batch, SEEN)

    def weights(self) -> Mapping[str, str]:
        """Also of the prompts, and how photos are sent, by which answers to the same captions differ."""
        seen = {"photos": f"JPEG {SIDE} {QUALITY} pillow {version('pillow')}"} if self._photos is not None else {}
        return {**super().weights(), "prompts": self._asked.digest, **seen}

    def media_names(self, candidate: Candidate) -> tuple[str, ...]:
        """The photo that the model sees, if any."""
        one = cast(NegativeCandidate | NegativeCaption, candidate)
        name = looked_for_by(one.image, one.image_id) if self._photos is not None else ""
        return (name,) if name else ()

    @property
    def _asked(self) -> Instructions:
        return asked_by(self.source)

    @cached_property
    def _photos(self) -> ImageFiles | None:
        return ImageFiles(self.source.photos, upright=True) if self.source.photos is not None else None

    def written(
        self, kinds: Sequence[str], candidates: Sequence[NegativeCandidate | NegativeCaption], seeds: Sequence[str]
    ) -> Iterator[Judged | UnusableImage]:
        """What is written of each candidate's caption, or why nothing is, in order.

        Args:
            kinds: asked for, one a candidate.
            seeds: of each, what its random numbers depend on.
        """
        photos = self._seen(candidates)
        requests = list[Request | UnusableImage]()
        for one, kind, seed in zip(candidates, kinds, seeds, strict=True):
            photo = photos.get(looked_for_by(one.image, one.image_id))
            if isinstance(photo, UnusableImage):
                requests.append(photo)
                continue
            images = () if photo is None else (photo,)
            number = int(generator_for(self.seed, self.name, seed).integers(2**31))
            requests.append(Request(self._asked.chat(kind, one.caption, bool(images)), number, images))
        whole = list(dict.fromkeys(one for one in requests if isinstance(one, Request)))
        answers = self.engine.answers(whole, schema_of(FIELD)) if whole else []
        known = dict(zip(whole, answers, strict=True))
        for one, kind, request in zip(candidates, kinds, requests, strict=True):
            if isinstance(request, UnusableImage):
                yield request
            else:
                yield judged(self._asked, kind, one.caption, known[request])

    def _seen(
        self, candidates: Sequence[NegativeCandidate | NegativeCaption]
    ) -> dict[str, EncodedImage | UnusableImage]:
        """Photos by name, as they are sent; decoded one at a time, since memory would not hold those of a shard."""
        seen: dict[str, EncodedImage | UnusableImage] = {}
        if self._photos is None:
            return seen
        for name in dict.fromkeys(looked_for_by(one.image, one.image_id) for one in candidates):
            read = self._photos.read([name])[name] if name else UnusableImage("no-image", "")
            if isinstance(read, UnusableImage):
                seen[name] = read
            else:
                seen[name] = EncodedImage.jpeg(Image.fromarray(read.pixels), SIDE, QUALITY)
        return seen


def rejected(key: str, made: Judged | UnusableImage) -> Rejected | None:
    """The rejection of a candidate for which nothing was written; None where something was."""
    if isinstance(made, UnusableImage):
        return made.rejected(key)
    return Rejected(key, made.reason, made.detail) if made.reason else None
