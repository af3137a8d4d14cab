"""Croissant 1.0 metadata (JSON-LD) of a finished subset, for search engines and for loaders such as `mlcroissant`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cards.citations import SOURCES, benchmark
from cards.summary import IndexSummary
from manifests.stage import Stage
from shards.kinds.kind import SampleKind
from shards.kinds.names import kind_of_source
from shards.kinds.pair import PAIR

# The context that the specification prescribes: https://docs.mlcommons.org/croissant/docs/croissant-spec.html
_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataBiases": "cr:dataBiases",
    "dataCollection": "cr:dataCollection",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "personalSensitiveInformation": "cr:personalSensitiveInformation",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}

_WHAT = {
    "pair": "minimal pairs, made the way EqBen makes them from {title}: two images that differ in one thing, and two "
    "captions that tell them apart.",
    "triplet": "triplets, mined the way GeneCIS mines them from {title}: a reference image, a condition in words, and "
    "the target image that the condition leads to.",
    "template": "templates, made the way GeneCIS makes them from {title}: a reference image, a condition in words, and "
    "a gallery of images of which the target is right.",
}

_FIELDS = {
    "key": "Key of the {noun}.",
    "tar": "The tar that holds it, below the subset.",
    "split": "Split.",
    "group": "Video or scene; never split over tars or splits.",
    "caption0": "Caption of image 0.",
    "caption1": "Caption of image 1.",
    "image0_sha256": "sha256 of the encoded image 0.",
    "image1_sha256": "sha256 of the encoded image 1.",
    "condition": "What leads from the reference to the target.",
    "task": "Task of GeneCIS.",
    "reference_caption": "Caption of the reference.",
    "target_caption": "Caption of the target.",
    "distractor_caption": "Caption of the distractor.",
    "reference_id": "Id of the reference image at its source.",
    "target_id": "Id of the target image at its source.",
    "distractor_id": "Id of the distractor at its source; empty where there is none.",
}


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file of the dataset. path: below the subset, with '/'; size: bytes."""

    path: str
    sha256: str
    size: int


def croissant(stage: Stage, summary: IndexSummary, index: FileFacts, tars: Sequence[FileFacts]) -> dict[str, Any]:
    """The metadata, to be stored in the subset's ``_meta`` folder: addresses are relative to it.

    Record set ``pairs`` (``triplets``, ``templates``) reads the index alone; those named as the fields of a sample
    (``image0``, ``caption0``, ``reference``, ``condition`` …) the tars, each with the key of its sample.
    """
    settings: dict[str, Any] = stage.facts["settings"]
    source, extension = settings["source"]["kind"], settings["encoding"]["format"]
    kind = kind_of_source(source)
    title, _, entry = SOURCES.get(source, (source, "", ""))
    metadata: dict[str, Any] = {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": stage.name,
        "description": f"{summary.kept} {_WHAT[kind.name].format(title=title)}",
        "license": settings["source"].get("licence", "not stated"),
        "citeAs": "\n\n".join(text for text in (benchmark(source), entry) if text),
        "version": "1.0.0",
        "identifier": stage.content,
        "distribution": [_file(index, "application/x-parquet"), *(_file(tar, "application/x-tar") for tar in tars)],
        "recordSet": [_samples(kind, summary, index)],
    }
    if tars:
        patterns = {role: f"*.{role}.{extension}" for role in summary.images}
        patterns |= {name: f"*.{name}.txt" for name in kind.texts}
        metadata["distribution"] += [_members(name, pattern, tars) for name, pattern in patterns.items()]
        metadata["recordSet"] += [_content(name, kind) for name in patterns]
    return metadata


def _file(file: FileFacts, encoding: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "contentUrl": f"../{file.path}",
        "contentSize": f"{file.size} B",
        "encodingFormat": encoding,
        "sha256": file.sha256,
    }


def _members(name: str, pattern: str, tars: Sequence[FileFacts]) -> dict[str, Any]:
    """The members of all tars that hold one field."""
    media = "text/plain" if pattern.endswith(".txt") else f"image/{pattern.rsplit('.', 1)[1].replace('jpg', 'jpeg')}"
    return {
        "@type": "cr:FileSet",
        "@id": f"{name}-files",
        "name": f"{name}-files",
        "containedIn": [{"@id": tar.path} for tar in tars],
        "encodingFormat": media,
        "includes": pattern,
    }


def _samples(kind: SampleKind, summary: IndexSummary, index: FileFacts) -> dict[str, Any]:
    """The index. Images that no sample has are left out of its columns."""
    several, images = f"{kind.name}s", PAIR.images if kind is PAIR else summary.images
    columns = ("key", "tar", "split", "group", *kind.described, *(f"{role}_sha256" for role in images))
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{several}/{name}",
            "name": name,
            "description": _described(name, kind),
            "dataType": "sc:Text",
            "source": {"fileObject": {"@id": index.path}, "extract": {"column": name}},
        }
        for name in columns
    ]
    return {
        "@type": "cr:RecordSet",
        "@id": several,
        "name": several,
        "description": f"Every {kind.name} that was kept, without its images.",
        "key": {"@id": f"{several}/key"},
        "field": fields,
    }


def _described(name: str, kind: SampleKind) -> str:
    if name.endswith("_sha256") and name not in _FIELDS:
        return f"sha256 of the encoded image {name.removesuffix('_sha256')}."
    if name == "group" and kind is not PAIR:
        return "What is never split over tars or splits."
    return _FIELDS[name].format(noun=kind.name)


def _content(name: str, kind: SampleKind) -> dict[str, Any]:
    """One field of all samples, with the key that it is joined on: the part of a member's name before the dot."""
    source = {"fileSet": {"@id": f"{name}-files"}}
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"{name} of every {kind.name} that was kept.",
        "key": {"@id": f"{name}/key"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/key",
                "name": "key",
                "description": _described("key", kind),
                "dataType": "sc:Text",
                "source": {
                    **source,
                    "extract": {"fileProperty": "filename"},
                    "transform": {"regex": r"^([a-z0-9-]+)\."},
                },
            },
            {
                "@type": "cr:Field",
                "@id": f"{name}/content",
                "name": "content",
                "description": f"{name} as it is stored.",
                "dataType": "sc:ImageObject" if name in kind.images else "sc:Text",
                "source": {**source, "extract": {"fileProperty": "content"}},
            },
        ],
    }
