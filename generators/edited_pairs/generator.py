"""EQ-SD: pairs drawn by prompt-to-prompt with a text-to-image model (EqBen, section B.5 and Figure 15)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, Json, Pixels, Rejected
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.locations import is_model_folder
from twinset.generators.edited_pairs.source import EVERYWHERE, StableDiffusion
from twinset.generators.edited_pairs.vocabulary import EditedCandidate, draw_edits, load_captions, vocabulary_file
from twinset.generators.negative_captions.changes import spans
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.models.diffusion.model_files import model_digest
from twinset.shards.contracts import Context, Generator
from twinset.shards.finished_stage import FinishedStage

if TYPE_CHECKING:
    from twinset.generators.edited_pairs.painter import Painted, Painter

LEVELS = 255  # of a colour channel
#: Where a similarity has nothing to compare: no similarity is negative. Not null, since loaders take the type of a
#: field from the first samples, and fail at a number where those were null.
NO_SIMILARITY = -1.0


class EditedPairGenerator(Generator[StableDiffusion]):
    """Pairs of images that one noise and two captions give, the second under the attention of the first."""

    version = 3
    # Torch's number of threads is its process's, and attention processors are their network's, of one call at a time.
    isolation = "process"
    candidate = EditedCandidate
    # Torch, diffusers and transformers belong to the runtime class: GPU workers have other builds, and planners none.
    libraries = ("numpy",)

    def __init__(self, source: StableDiffusion, context: Context) -> None:
        super().__init__(source, context)
        self.micro_batch = source.micro_batch
        self.threads = source.threads

    def inputs(self) -> str:
        if self.source.negatives is not None:
            return self.context.earlier(self.source.negatives).digest
        return digest([sha256_of_file(vocabulary_file(self.source.vocabulary))[0]])

    def weights(self) -> dict[str, str]:
        """Digests of the models' files; raises `WrongUse` naming those that are not on this machine."""
        return {"model": model_digest(self.source.model)}

    def device(self) -> str:
        return self.source.device_name("source.device")

    def plan(self) -> Iterator[EditedCandidate]:
        """Pairs without end, or one a negative caption; how many are taken does not change the first ones."""
        if self.source.negatives is not None:
            yield from self._planned(self.context.earlier(self.source.negatives))
            return
        for drawn in draw_edits(load_captions(vocabulary_file(self.source.vocabulary)), self.seed, self.name):
            region0, region1 = drawn.region or ("", "")
            yield EditedCandidate(
                **self.identified(drawn.index, group=f"drawing-{drawn.index:06d}"),
                captions0=(drawn.captions[0],),
                captions1=(drawn.captions[1],),
                change=drawn.kind,
                words0=drawn.words[0],
                words1=drawn.words[1],
                region0=region0,
                region1=region1,
                plain=drawn.plain,
            )

    def _planned(self, earlier: FinishedStage) -> Iterator[EditedCandidate]:
        """A drawing a row: the caption is drawn alone, its negative under the caption's attention."""
        for batch in earlier.batches(["identity", *TERMS, *COLUMNS.names]):
            for row in batch.to_pylist():
                both = row["caption"], row["negative_caption"]
                old, new = zip(*spans(*both), strict=True)
                yield EditedCandidate(
                    **self.identified(*json.loads(row["identity"]), shows=(Terms.of(row),)),
                    captions0=(both[0],),
                    captions1=(both[1],),
                    change=row["subtype"] or "edit",
                    words0=" ".join(chain.from_iterable(old)),
                    words1=" ".join(chain.from_iterable(new)),
                    region0="",
                    region1="",
                    plain=0,
                )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Drawn pairs, a micro-batch at a time, or why a pair is broken: ``caption-unfit`` for captions that the model
        cannot read, and the reasons of `broken`.

        Raises `contracts.parts.OutOfMemory` when a micro-batch does not fit, `BuildFailed` when the model does not.
        """
        wanted = cast(Sequence[EditedCandidate], candidates)
        for start in range(0, len(wanted), self.micro_batch):
            batch = wanted[start : start + self.micro_batch]
            for candidate, painted in zip(batch, self._painter.paint(batch, self.micro_batch), strict=True):
                yield self._judge(candidate, painted)

    def _judge(self, candidate: EditedCandidate, painted: Painted | str) -> Pair | Rejected:
        if isinstance(painted, str):
            return Rejected(candidate.key, "caption-unfit", painted)
        image0, image1 = painted.images
        if reason := broken(image0, image1, painted.finite):
            return Rejected(candidate.key, reason)
        files = self._painter.files
        return Pair(
            **candidate.placed,
            change=candidate.change,
            image0=Frame(f"{candidate.key}#0", image0, -1.0, files[0]),
            image1=Frame(f"{candidate.key}#1", image1, -1.0, files[0]),
            provenance=self._provenance(candidate, painted),
            scores=similarity(image0, image1, painted.region),
            sources=files[1:],
            flags=(EVERYWHERE,) if candidate.region0 and painted.region.all() else (),
        )

    def _provenance(self, candidate: EditedCandidate, painted: Painted) -> dict[str, Json]:
        source = self.source
        settings = ("scheduler", "steps", "guidance", "cross_replace_steps", "self_replace_steps")
        return {
            # Where a folder lies is no part of what is made.
            "model": "a folder" if is_model_folder(source.model) else source.model,
            "weights": self._painter.digest,
            **{name: getattr(source, name) for name in settings},
            "alignment": painted.alignment,
            "blend0": candidate.region0 if source.blend else "",
            "blend1": candidate.region1 if source.blend else "",
            "plain": candidate.plain,
            "words0": candidate.words0,
            "words1": candidate.words1,
            "seed": self.seed,
        }

    @cached_property
    def _painter(self) -> Painter:
        # Torch is heavy: a plan does without it.
        from twinset.generators.edited_pairs.painter import Painter

        return Painter(self.name, self.source, self.seed)


def broken(image0: Pixels, image1: Pixels, finite: bool) -> str:
    """The reason why a pair cannot be used whatever its captions say, or "". Images are (height, width, 3).

    No limit is drawn that a good picture could fall short of: a picture is ``blank`` when all its pixels are equal, and
    a pair ``identical`` when no pixel differs.
    """
    if not finite:
        return "not-finite"
    if any((image == image[0, 0]).all() for image in (image0, image1)):
        return "blank"
    return "identical" if np.array_equal(image0, image1) else ""


def similarity(image0: Pixels, image1: Pixels, region: NDArray[np.bool_]) -> dict[str, float]:
    """How much of the picture the edited thing takes, and how alike the two images are within and without.

    region: (height, width), where the words that name the edited thing have their attention; everywhere for an edit of
    the whole picture. Gives ``region`` (its share of the picture, 0-1), ``similarity_inside`` and
    ``similarity_outside``: 1 less the mean absolute difference of colour channels as a share of their range, so that 1
    is equal; `NO_SIMILARITY` where there is nothing to compare. A good edit of a thing is less alike inside than
    outside; an edit that hardly changes the inside has failed. Sums are whole numbers: the same on every machine for
    the same images.
    """
    differences = np.abs(image0.astype(np.int16) - image1.astype(np.int16)).sum(axis=2, dtype=np.int64)
    inside, outside = (
        1 - int(part.sum()) / (part.size * 3 * LEVELS) if part.size else NO_SIMILARITY
        for part in (differences[region], differences[~region])
    )
    return {"region": float(region.mean()), "similarity_inside": inside, "similarity_outside": outside}
