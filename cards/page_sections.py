"""What the look page shows of each kind of samples: words, and images as data URIs."""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from cards.lettering import LONGEST_TEXT
from cards.sheet import thumbnail
from cards.word_diff import Marked, mark_difference
from shards.kinds.reading import StoredPair, StoredTemplate, StoredTriplet
from shards.kinds.triplet import PARTS
from shards.rows import Row

PAGE_IMAGE = (480, 480)
GALLERY_IMAGE = (200, 200)


@dataclass(frozen=True, slots=True)
class Twins:
    """A pair. images: data URIs. sides: captions as runs of words, marked where they differ."""

    key: str
    group: str
    change: str
    images: tuple[str, str]
    sides: tuple[Marked, Marked]


@dataclass(frozen=True, slots=True)
class Said:
    """An image and what is said of it, as part of a triplet. shape: width by height."""

    part: str
    image: str
    shape: float
    caption: str


@dataclass(frozen=True, slots=True)
class ShownTriplet:
    """A triplet. said: reference, target and, where stored, distractor. told: what they have in common, and scores."""

    key: str
    group: str
    condition: str
    said: Sequence[Said]
    told: str


@dataclass(frozen=True, slots=True)
class ShownTemplate:
    """A template. gallery: the target first. told: its provenance."""

    key: str
    condition: str
    reference: str
    gallery: Sequence[str]
    told: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A triplet without images. captions: of reference, target and distractor, "" for none; ids: of their images."""

    condition: str
    captions: Sequence[str]
    ids: Sequence[str]


def twins(pair: StoredPair) -> Twins:
    """A pair as the page shows it."""
    marked0, marked1 = mark_difference(_cut(pair.caption0), _cut(pair.caption1))
    return Twins(
        pair.key,
        pair.json.group,
        pair.json.change,
        (_data_uri(pair.image0, pair.key), _data_uri(pair.image1, pair.key)),
        (_runs(marked0), _runs(marked1)),
    )


def shown_triplet(triplet: StoredTriplet) -> ShownTriplet:
    """A triplet as the page shows it."""
    said = [
        Said(part, *_shaped(triplet.images[part], triplet.key), _cut(triplet.json.captions.get(part, "")))
        for part in PARTS
        if part in triplet.images
    ]
    told = ", ".join(told_of_triplet(triplet))
    return ShownTriplet(triplet.key, triplet.json.group, _cut(triplet.condition), said, told)


def shown_template(template: StoredTemplate) -> ShownTemplate:
    """A template as the page shows it."""
    images = dict(template.images)
    reference = _data_uri(images.pop("reference"), template.key)
    gallery = [_data_uri(image, template.key, GALLERY_IMAGE) for image in images.values()]
    return ShownTemplate(template.key, _cut(template.condition), reference, gallery, told(template))


def listed(row: Row) -> Listed:
    """A row of an index of triplets as the page shows it."""
    captions = [_cut(row.words[f"{part}_caption"]) for part in PARTS]
    return Listed(_cut(row.words["condition"]), captions, [_cut(row.words[f"{part}_id"]) for part in PARTS])


def told_of_triplet(triplet: StoredTriplet) -> list[str]:
    """The subject that reference and target share, which a caption of several does not show, and the scores."""
    relation = triplet.json.provenance.get("target")
    subject = relation.get("subject") if isinstance(relation, dict) else None
    scores = [f"{name} {value:.2f}" for name, value in sorted(triplet.json.scores.items())]
    return [*([f"subject {_cut(subject)}"] if isinstance(subject, str) else []), *scores]


def told(template: StoredTemplate) -> str:
    """The words and numbers of a template's provenance on one line."""
    simple = {name: value for name, value in template.json.provenance.items() if isinstance(value, str | int | float)}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in simple.items())


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"


def _runs(words: Marked) -> Marked:
    """Neighbouring words that all differ, or all do not, as one."""
    runs = itertools.groupby(words, key=lambda word: word[1])
    return [(" ".join(word for word, _ in run), differs) for differs, run in runs]


def _data_uri(content: bytes, key: str, box: tuple[int, int] = PAGE_IMAGE) -> str:
    return _shaped(content, key, box)[0]


def _shaped(content: bytes, key: str, box: tuple[int, int] = PAGE_IMAGE) -> tuple[str, float]:
    stream = io.BytesIO()
    picture = thumbnail(content, key, box)
    picture.save(stream, "JPEG", quality=85)
    uri = "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
    return uri, picture.width / picture.height
