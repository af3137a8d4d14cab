"""The settings of pairs of a photo and its edit, and what their card says (VisMin, section 3)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import digest, generator_for, sample_key, sha256_of_file
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, Pixels, Rejected, encode_image
from twinset.contracts.licences.terms import TERMS, Terms, together
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import AnnotationFile, MediaFolderPath, Need, Settings, StageName
from twinset.generators.image_files import IMAGE_REASONS, ImageFiles, UnusableImage
from twinset.generators.licences import DerivingTerms, forbids_changes
from twinset.generators.negative_captions.exchange.vocabulary import vocabulary
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.generators.reasons import reasons_beside
from twinset.models.device import check_opencv
from twinset.models.engines import EngineSource
from twinset.models.image_engine import Drawn
from twinset.shards.media.decode import decode
from twinset.shards.media.media_folder import ImageFolder, Media
from twinset_extras.comparison import RADIUS, UNKNOWN, Bools, box_of, differences, grown, likeness, shifts
from twinset_extras.edited_photos.image_editor import Edit, ImageEditorEngine
from twinset_extras.edited_photos.places import BadMask, Instances, chosen, largest_overlap, mask_of, stored
from twinset_extras.edited_photos.wording import Nouns, Wanted, names_of, wanted

Change = Literal["object", "attribute", "count", "removal"]


class Bounds(Settings):
    """What an edit must keep to, measured on the files as they are stored.

    shift: most pixels that nine tenths of the textured tiles outside of the place may have moved. ssim, difference,
    worst: least structural similarity, most mean difference of colours (0-255), and most of any 32 x 32 pixels, all
    outside of the place. changed: least mean difference within it.
    """

    shift: float = Field(default=1.0, ge=0, le=32)
    ssim: float = Field(default=0.9, ge=0, le=1)
    difference: float = Field(default=5.0, ge=0, le=255)
    worst: float = Field(default=16.0, ge=0, le=255)
    changed: float = Field(default=8.0, ge=0, le=255)


#: Pixels around a mask that its change reaches by the codec's blocks of 8 and the window of structural similarity.
REACH = 16


def figures(before: Pixels, raw: Pixels, after: Pixels, mask: Bools) -> dict[str, float]:
    """What `EditedPhotos.scored` explains. raw: as the editor gave it; after: with what was pasted."""
    outside = ~grown(mask, REACH)
    moved = shifts(before, raw, outside)
    alike = likeness(before, after, outside)
    return {
        "place": round(float(mask.mean()), 4),
        "shift": round(float(np.quantile(np.nan_to_num(moved, nan=RADIUS), 0.9)), 1) if len(moved) else UNKNOWN,
        "ssim_outside": alike.ssim,
        "difference_outside": alike.difference,
        "worst_outside": alike.worst,
        "difference_inside": round(float(differences(before, after)[mask].mean()), 3),
    }


def against(scores: Mapping[str, float], bounds: Bounds) -> str:
    """The reason why an edit is not proved; empty where it is."""
    if scores["difference_outside"] == UNKNOWN:
        return "place-too-large"
    if scores["shift"] > bounds.shift:
        return "moved"
    alike = scores["ssim_outside"] >= bounds.ssim and scores["difference_outside"] <= bounds.difference
    if not alike or scores["worst_outside"] > bounds.worst:
        return "changed-outside"
    return "hardly-changed" if scores["difference_inside"] < bounds.changed else ""


SLICE = 4096  # rows that are Python objects at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class EditCandidate(CaptionedCandidate):
    """One edit. caption_id, image_id, type, subtype: of the negative caption. photo: name of the picture.

    change, noun, phrase, instruction, count, removed: as `edited_photos.wording.Wanted`. category: of what must change.
    places: what must change, as `edited_photos.places.stored`. others: what else is annotated, likewise.
    """

    caption_id: str
    image_id: str
    type: str
    subtype: str
    photo: str
    change: str
    noun: str
    phrase: str
    instruction: str
    category: str
    count: int
    removed: int
    places: str
    others: str

    @property
    def media_names(self) -> tuple[str, ...]:
        return (self.photo,)

    @property
    def counted_as(self) -> str:
        return self.change


def _of(change: Wanted) -> dict[str, Any]:
    return {name: value for name, value in asdict(change).items() if name != "categories"}


class EditedPhotos(DerivingTerms, EngineSource):
    """A photo with its caption, and an edit of it that shows the negative caption, changed in one place and proved so.

    negatives: the stage of negative captions, whose rows name the photos. photos: folder of the photos, of folders
    of them, or of tars. instances: COCO's, whose boxes and masks say where a noun of the caption is. engine: the
    editor. changes: those that are made: an ``object`` becomes another, an ``attribute`` changes, a ``count``
    falls, or what a negative denies is removed. margin: pixels that a mask is wider than the outline. smallest,
    largest: share of the picture that a place may have (0-1). shared: most of another instance that may lie in it
    (0-1). paste: whether what lies outside of the mask is taken from the photo after the shift was measured, for
    editors that redraw the whole picture. bounds: of the proof.
    licence: of what the editor paints.
    """

    kind: Literal["edited-photos"]
    negatives: StageName
    photos: MediaFolderPath
    instances: AnnotationFile
    engine: ImageEditorEngine
    changes: Annotated[tuple[Change, ...], Field(min_length=1)] = ("object", "attribute", "count", "removal")
    margin: int = Field(default=4, ge=0, le=256)
    smallest: float = Field(default=0.005, ge=0, le=1)
    largest: float = Field(default=0.5, gt=0, le=1)
    shared: float = Field(default=0.1, ge=0, le=1)
    paste: bool = False
    bounds: Bounds = Bounds()
    licence: str = ""

    makes = "pair"
    paper = Reference("VisMin", "https://arxiv.org/abs/2407.16772", bibtex("awal2024vismin"))
    group = "image"
    verb = "edited from"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, **reasons_beside(__file__, "edited-photos")}
    scored: ClassVar[Mapping[str, str]] = {
        "place": "share of the picture that the mask takes (0-1)",
        "shift": "pixels that nine tenths of the textured tiles outside have moved at most (8: lost, -1: no tile)",
        "ssim_outside": "structural similarity outside of the place (to 1)",
        "difference_outside": "mean difference of colours there (0-255)",
        "worst_outside": "that of the 32 x 32 pixels that differ most (0-255)",
        "difference_inside": "mean difference of colours within the place (0-255)",
    }
    unmeasured: ClassVar[Mapping[str, float]] = {"shift": -1.0}

    def media_files(self) -> Media:
        return ImageFolder(self.photos)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "media" in needs:
            check_opencv(key)

    version = 4
    candidate = EditCandidate

    @property
    def libraries(self) -> tuple[str, ...]:  # type: ignore[override]  # of a class as a rule
        return tuple({*getattr(self.worker, "libraries", ()), "numpy", "opencv-python", "pillow"})

    def inputs(self) -> str:
        return digest([self.earlier().digest, sha256_of_file(self.instances)[0], vocabulary().digest])

    def plan(self) -> Iterator[EditCandidate]:
        """Edits photo by photo, in the order in which negative captions first name them."""
        instances = Instances(self.instances, self.excluded)
        nouns = Nouns(names_of(instances.categories, vocabulary()))
        table = self.earlier().read(["identity", *TERMS, *COLUMNS.names])
        photos = np.array([row["image"] or row["image_id"] for row in table.select(["image", "image_id"]).to_pylist()])
        _, first, codes = np.unique(photos, return_index=True, return_inverse=True)
        order = np.argsort(first[codes], kind="stable")
        for start in range(0, len(order), SLICE):
            for row in table.take(order[start : start + SLICE]).to_pylist():
                planned = self._planned(row, instances, nouns)
                if isinstance(planned, str):
                    self.excluded.add(planned, f"{row['caption_id']}: {row['negative_caption'][:100]}")
                else:
                    yield planned

    def _planned(self, row: Mapping[str, str], instances: Instances, nouns: Nouns) -> EditCandidate | str:
        shown = together((Terms.of(row), instances.terms_of(row["image"], row["image_id"])))
        if not self.allow_no_derivatives and forbids_changes(shown.licence):
            return "no-derivatives"
        change = wanted(row["caption"], row["negative_caption"], row["type"], nouns)
        if isinstance(change, str):
            return change
        if change.change not in self.changes:
            return "other-change"
        if not (photo := row["image"] or row["image_id"]):
            return "no-photo"
        if (there := instances.of(row["image"], row["image_id"])) is None:
            return "not-annotated"
        places = chosen([place for place in there if place.category in change.categories], change.count, change.removed)
        if isinstance(places, str):
            return places
        group = sample_key(self.stage.name, "image", photo)
        return EditCandidate(
            **self.identified(*json.loads(row["identity"]), group=group, shows=(shown,)),
            captions0=(row["caption"],),
            captions1=(row["negative_caption"],),
            caption_id=row["caption_id"],
            image_id=row["image_id"],
            type=row["type"],
            subtype=row["subtype"],
            photo=photo,
            category=change.categories[0],
            places=stored(places),
            others=stored([place for place in there if place not in places]),
            **_of(change),
        )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """A pair each, or why there is none. Raises what `ImageEditor.edit` raises."""
        planned, kind = cast(Sequence[EditCandidate], candidates), self.engine.kind
        photos = self._photos.read(candidate.photo for candidate in planned)
        asked = {candidate.key: self._asked(candidate, photos[candidate.photo]) for candidate in planned}
        edited = self.worker.edit([edit for edit in asked.values() if isinstance(edit, Edit)])
        for candidate in planned:
            edit = asked[candidate.key]
            if isinstance(edit, Rejected):
                yield edit
                continue
            given = next(edited, None)
            if given is None or given.key != candidate.key:
                raise BuildFailed(f"{kind}: gives no result for {candidate.key}, or not in order; correct its package")
            if isinstance(given, Drawn) and (given.pixels.dtype != np.uint8 or given.pixels.shape[2:] != (3,)):
                form = f"{given.pixels.dtype} {given.pixels.shape}, not uint8 (height, width, 3)"
                raise BuildFailed(f"{kind}: {candidate.key} is {form}; correct its package")
            photo = cast(Frame, photos[candidate.photo])
            yield given if isinstance(given, Rejected) else self._proved(candidate, photo, edit, given)

    def _asked(self, candidate: EditCandidate, photo: Frame | UnusableImage) -> Edit | Rejected:
        if isinstance(photo, UnusableImage):
            return photo.rejected(candidate.key)
        try:
            mask = mask_of(candidate.places, *photo.pixels.shape[:2])
            mask = grown(mask, self.margin) if mask.any() else mask
            shared = largest_overlap(candidate.others, mask)
        except BadMask as error:
            return Rejected(candidate.key, "bad-mask", str(error))
        share = float(mask.mean())
        if not mask.any() or share < self.smallest:  # a place at the border can have no pixel
            return Rejected(candidate.key, "place-too-small", f"{share:.4f}")
        if share > self.largest:
            return Rejected(candidate.key, "place-too-large", f"{share:.4f}")
        if shared > self.shared:
            return Rejected(candidate.key, "place-shared", f"{shared:.2f} of another instance")
        caption, negative = candidate.captions0[0], candidate.captions1[0]
        seed = int(generator_for(self.stage.seed, self.stage.name, candidate.key).integers(2**63))
        return Edit(candidate.key, photo.pixels, mask, caption, negative, candidate.phrase, candidate.instruction, seed)

    def _proved(self, candidate: EditCandidate, photo: Frame, edit: Edit, given: Drawn) -> Pair | Rejected:
        """The pair with the figures of its proof, or what speaks against it."""
        before, after, mask = edit.pixels, given.pixels, cast(Bools, edit.mask)
        if after.shape != before.shape:
            sizes = [f"{pixels.shape[1]} x {pixels.shape[0]}" for pixels in (after, before)]
            return Rejected(candidate.key, "other-size", f"{sizes[0]} of a photo of {sizes[1]}")
        if (after == after[0, 0]).all():
            return Rejected(candidate.key, "blank")
        if np.array_equal(before, after):
            return Rejected(candidate.key, "same-image")
        content = self._encoded(after)
        if self.paste:
            after = np.where(mask[..., None], after, before)
        scores = figures(self._stored(before), np.asarray(decode(content, "")), self._stored(after), mask)
        if reason := against(scores, self.bounds):
            return Rejected(candidate.key, reason, ", ".join(f"{name} {value:g}" for name, value in scores.items()))
        # URLs: what an editor was made of does not lie in the folder of the photos.
        made_of, editor = given.sources or (MediaFile("", 0, ""),), f"editor://{self.engine.kind}"
        first, *other_files = (replace(file, path=f"{editor}/{file.path}") for file in made_of)
        recorded = ("caption_id", "image_id", "type", "subtype", "photo", "noun", "phrase", "instruction")
        return Pair(
            **candidate.placed,
            change=candidate.change,
            image0=photo,
            image1=Frame(f"{candidate.key}#1", after, -1.0, first),
            scores=scores,
            sources=tuple(other_files),
            provenance={
                **{name: getattr(candidate, name) for name in recorded},
                "box": asdict(box_of(mask)),
                "paste": self.paste,
                "seed": edit.seed,
                "engine": dict(given.provenance),
            },
        )

    def _encoded(self, pixels: Pixels) -> bytes:
        return encode_image(Frame("", pixels, -1.0, MediaFile("", 0, "")), self.stage.encoding).content

    def _stored(self, pixels: Pixels) -> Pixels:
        """A picture as readers of the stage will see it."""
        return np.asarray(decode(self._encoded(pixels), ""))

    @cached_property
    def _photos(self) -> ImageFiles:
        return ImageFiles(self.photos, upright=False)  # annotations count the stored pixels
