"""Plans an edit a negative caption whose change has one place in its photo, and proves what the editor gave."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import digest, generator_for, sample_key, sha256_of_file
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, Pixels, Rejected, encode_image
from twinset.contracts.licences.names import forbids_changes
from twinset.contracts.licences.terms import TERMS, Terms, together
from twinset.generators.image_files import ImageFiles, UnusableImage
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.generators.negative_captions.rules.vocabulary import vocabulary
from twinset.models.engines import EngineGenerator
from twinset.models.image_engine import Drawn
from twinset.shards.contracts import Context
from twinset.shards.media.comparison import RADIUS, UNKNOWN, Bools, box_of, differences, grown, likeness, shifts
from twinset.shards.media.decode import decode
from twinset_extras.edited_photos.image_editor import Edit, ImageEditor
from twinset_extras.edited_photos.places import BadMask, Instances, chosen, largest_overlap, mask_of, stored
from twinset_extras.edited_photos.source import Bounds, EditedPhotos
from twinset_extras.edited_photos.wording import Nouns, Wanted, names_of, wanted

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


class EditedPhotoGenerator(EngineGenerator[EditedPhotos]):
    """One pair an edit; those of a photo are a group."""

    version = 3
    engine: ImageEditor
    candidate = EditCandidate

    def __init__(self, source: EditedPhotos, context: Context) -> None:
        super().__init__(source, context)
        self.libraries = tuple({*self.engine.libraries, "numpy", "opencv-python", "pillow"})  # type: ignore[misc]
        self.passes = self.engine.passes

    def inputs(self) -> str:
        return digest([self.earlier.digest, sha256_of_file(self.source.instances)[0], vocabulary().digest])

    def plan(self) -> Iterator[EditCandidate]:
        """Edits photo by photo, in the order in which negative captions first name them."""
        instances = Instances(self.source.instances, self.excluded)
        nouns = Nouns(names_of(instances.categories, vocabulary()))
        table = self.earlier.read(["identity", *TERMS, *COLUMNS.names])
        photos = np.array([one["image"] or one["image_id"] for one in table.select(["image", "image_id"]).to_pylist()])
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
        if self.source.derives and forbids_changes(shown.licence):
            return "no-derivatives"
        change = wanted(row["caption"], row["negative_caption"], row["type"], nouns)
        if isinstance(change, str):
            return change
        if change.change not in self.source.changes:
            return "other-change"
        if not (photo := row["image"] or row["image_id"]):
            return "no-photo"
        if (there := instances.of(row["image"], row["image_id"])) is None:
            return "not-annotated"
        places = chosen([one for one in there if one.category in change.categories], change.count, change.removed)
        if isinstance(places, str):
            return places
        group = sample_key(self.name, "image", photo)
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
            others=stored([one for one in there if one not in places]),
            **_of(change),
        )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """A pair each, or why there is none. Raises what `ImageEditor.edit` raises."""
        planned, kind = cast(Sequence[EditCandidate], candidates), self.source.engine.kind
        photos = self._photos.read(one.photo for one in planned)
        asked = {one.key: self._asked(one, photos[one.photo]) for one in planned}
        edited = self.engine.edit([edit for edit in asked.values() if isinstance(edit, Edit)])
        for one in planned:
            edit = asked[one.key]
            if isinstance(edit, Rejected):
                yield edit
                continue
            given = next(edited, None)
            if given is None or given.key != one.key:
                raise BuildFailed(f"{kind}: gives no result for {one.key}, or not in order; correct its package")
            if isinstance(given, Drawn) and (given.pixels.dtype != np.uint8 or given.pixels.shape[2:] != (3,)):
                form = f"{given.pixels.dtype} {given.pixels.shape}, not uint8 (height, width, 3)"
                raise BuildFailed(f"{kind}: {one.key} is {form}; correct its package")
            photo = cast(Frame, photos[one.photo])
            yield given if isinstance(given, Rejected) else self._proved(one, photo, edit, given)

    def _asked(self, one: EditCandidate, photo: Frame | UnusableImage) -> Edit | Rejected:
        if isinstance(photo, UnusableImage):
            return photo.rejected(one.key)
        try:
            mask = mask_of(one.places, *photo.pixels.shape[:2])
            mask = grown(mask, self.source.margin) if mask.any() else mask
            shared = largest_overlap(one.others, mask)
        except BadMask as error:
            return Rejected(one.key, "bad-mask", str(error))
        share = float(mask.mean())
        if not mask.any() or share < self.source.smallest:  # a place at the border can have no pixel
            return Rejected(one.key, "place-too-small", f"{share:.4f}")
        if share > self.source.largest:
            return Rejected(one.key, "place-too-large", f"{share:.4f}")
        if shared > self.source.shared:
            return Rejected(one.key, "place-shared", f"{shared:.2f} of another instance")
        caption, negative = one.captions0[0], one.captions1[0]
        seed = int(generator_for(self.seed, self.name, one.key).integers(2**63))
        return Edit(one.key, photo.pixels, mask, caption, negative, one.phrase, one.instruction, seed)

    def _proved(self, one: EditCandidate, photo: Frame, edit: Edit, given: Drawn) -> Pair | Rejected:
        """The pair with the figures of its proof, or what speaks against it."""
        before, after, mask = edit.pixels, given.pixels, cast(Bools, edit.mask)
        if after.shape != before.shape:
            sizes = [f"{pixels.shape[1]} x {pixels.shape[0]}" for pixels in (after, before)]
            return Rejected(one.key, "other-size", f"{sizes[0]} of a photo of {sizes[1]}")
        if (after == after[0, 0]).all():
            return Rejected(one.key, "blank")
        if np.array_equal(before, after):
            return Rejected(one.key, "same-image")
        content = self._encoded(after)
        if self.source.paste:
            after = np.where(mask[..., None], after, before)
        scores = figures(self._stored(before), np.asarray(decode(content, "")), self._stored(after), mask)
        if reason := against(scores, self.source.bounds):
            return Rejected(one.key, reason, ", ".join(f"{name} {value:g}" for name, value in scores.items()))
        # URLs: what an editor was made of does not lie in the folder of the photos.
        made_of, editor = given.sources or (MediaFile("", 0, ""),), f"editor://{self.source.engine.kind}"
        first, *others = (replace(file, path=f"{editor}/{file.path}") for file in made_of)
        told = ("caption_id", "image_id", "type", "subtype", "photo", "noun", "phrase", "instruction")
        return Pair(
            **one.placed,
            change=one.change,
            image0=photo,
            image1=Frame(f"{one.key}#1", after, -1.0, first),
            scores=scores,
            sources=tuple(others),
            provenance={
                **{name: getattr(one, name) for name in told},
                "box": asdict(box_of(mask)),
                "paste": self.source.paste,
                "seed": edit.seed,
                "engine": dict(given.provenance),
            },
        )

    def _encoded(self, pixels: Pixels) -> bytes:
        return encode_image(Frame("", pixels, -1.0, MediaFile("", 0, "")), self.context.encoding).content

    def _stored(self, pixels: Pixels) -> Pixels:
        """A picture as readers of the stage will see it."""
        return np.asarray(decode(self._encoded(pixels), ""))

    @cached_property
    def _photos(self) -> ImageFiles:
        return ImageFiles(self.source.photos, upright=False)  # annotations count the stored pixels


def _of(change: Wanted) -> dict[str, Any]:
    return {name: value for name, value in asdict(change).items() if name != "categories"}
