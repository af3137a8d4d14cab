"""Samples as the fields of a WebDataset row: encoded images, caption files and one JSON with every key always there."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.kind import SAMPLE_SCHEMA, Sample, SampleKind, Stored
from twinset.contracts.kinds.samples import EXTENSIONS, EncodedImage
from twinset.contracts.licences.terms import Terms
from twinset.shards.storage.tar_reader import BrokenTar

REMEDY = "build this shard again"


def fields_of(
    sample: Sample, images: Mapping[str, EncodedImage], dataset: str, terms: Terms, extension: str
) -> list[tuple[str, bytes]]:
    """The tar fields of a sample, in the order that they are written. dataset: kind of the source."""
    sources = {role: asdict(image.source) for role, image in images.items()}
    pictures = {role: {"sha256": one.sha256, "size": list(one.size), "pts": one.pts} for role, one in images.items()}
    described = {
        "schema_version": SAMPLE_SCHEMA,
        "kind": sample.kind.name,
        "split": sample.split,
        "group": sample.group,
        **sample.recorded(dataset, sources, pictures),
        "scores": sample.scores,
        "provenance": dict(sample.provenance),
        **terms._asdict(),
    }
    words = sample.described()
    return [
        *((sample.kind.image_field(role, extension), image.content) for role, image in images.items()),
        *((sample.kind.text_field(name), words[name].encode("utf-8")) for name in sample.kind.texts),
        ("json", canonical_json(described)),
    ]


def content_digest(sample: Sample, images: Mapping[str, str]) -> str:
    """The same for two samples that ask the same question. images: sha256 by role."""
    return digest(sample.question(images))


def stored(key: str, fields: Mapping[str, bytes], where: str) -> Stored[Any]:
    """The sample that the fields of a tar make, of the kind that its JSON names; `BrokenTar` when they make none."""
    try:
        described = from_json(fields["json"])
        kind = KINDS[described["kind"]]
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenTar(f"{where}: {key} has {sorted(fields)}, and no json of a sample; {REMEDY}") from error
    extension = next((one for one in EXTENSIONS if kind.image_field(kind.images[0], one) in fields), EXTENSIONS[0])
    _check_fields(key, kind, fields, extension, where)
    try:
        return Stored(
            kind,
            key,
            {role: fields[name] for role in kind.images if (name := kind.image_field(role, extension)) in fields},
            extension,
            {name: fields[kind.text_field(name)].decode("utf-8") for name in kind.texts},
            kind.record.model_validate(described),
            fields,
        )
    except UnicodeDecodeError as error:
        raise BrokenTar(f"{where}: a caption of {key} is not UTF-8 ({error}); {REMEDY}") from error
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
        raise BrokenTar(f"{where}: {key}.json: {problem}; {REMEDY}") from error


def _check_fields(key: str, kind: SampleKind, fields: Mapping[str, bytes], extension: str, where: str) -> None:
    """Refuse fields that are too few or too many: optional images are absent from some on."""
    there = tuple(role for role in kind.images if kind.image_field(role, extension) in fields)
    needed = {role for role in kind.images if role not in kind.optional}
    wanted = {kind.image_field(role, extension) for role in needed | {*there}}
    wanted |= {kind.text_field(name) for name in kind.texts} | {"json"}
    if set(fields) != wanted or there != kind.images[: len(there)]:
        raise BrokenTar(f"{where}: {key} has {sorted(fields)} instead of {sorted(wanted)}; {REMEDY}")
