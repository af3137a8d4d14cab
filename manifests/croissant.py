"""Croissant 1.0 metadata (JSON-LD) of a finished subset, for search engines and for loaders such as `mlcroissant`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manifests.citations import EQBEN, SOURCES
from manifests.stage import Stage
from manifests.summary import IndexSummary

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

_INDEX_FIELDS = {
    "key": "Key of the pair.",
    "tar": "The tar that holds it, below the subset.",
    "split": "Split.",
    "group": "Video or scene; never split over tars or splits.",
    "caption0": "Caption of image 0.",
    "caption1": "Caption of image 1.",
    "image0_sha256": "sha256 of the encoded image 0.",
    "image1_sha256": "sha256 of the encoded image 1.",
}


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file of the dataset. path: below the subset, with '/'; size: bytes."""

    path: str
    sha256: str
    size: int


def croissant(stage: Stage, summary: IndexSummary, index: FileFacts, tars: Sequence[FileFacts]) -> dict[str, Any]:
    """The metadata, to be stored in the subset's ``_meta`` folder: addresses are relative to it.

    Record set ``pairs`` reads the index alone; ``image0``, ``image1``, ``caption0`` and ``caption1`` the tars, each
    with the key of its pair.
    """
    settings: dict[str, Any] = stage.facts["settings"]
    kind, extension = settings["source"]["kind"], settings["encoding"]["format"]
    title, _, entry = SOURCES.get(kind, (kind, "", ""))
    metadata: dict[str, Any] = {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": stage.name,
        "description": f"{summary.kept} minimal pairs, made the way EqBen makes them from {title}: two images that "
        "differ in one thing, and two captions that tell them apart.",
        "license": settings["source"].get("licence", "not stated"),
        "citeAs": "\n\n".join(text for text in (EQBEN, entry) if text),
        "version": "1.0.0",
        "identifier": stage.content,
        "distribution": [_file(index, "application/x-parquet"), *(_file(tar, "application/x-tar") for tar in tars)],
        "recordSet": [_pairs(index)],
    }
    if tars:
        metadata["distribution"] += [_members(name, pattern, tars) for name, pattern in _patterns(extension).items()]
        metadata["recordSet"] += [_content(name) for name in _patterns(extension)]
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


def _patterns(extension: str) -> dict[str, str]:
    return {
        "image0": f"*.image0.{extension}",
        "image1": f"*.image1.{extension}",
        "caption0": "*.caption0.txt",
        "caption1": "*.caption1.txt",
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


def _pairs(index: FileFacts) -> dict[str, Any]:
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"pairs/{name}",
            "name": name,
            "description": description,
            "dataType": "sc:Text",
            "source": {"fileObject": {"@id": index.path}, "extract": {"column": name}},
        }
        for name, description in _INDEX_FIELDS.items()
    ]
    return {
        "@type": "cr:RecordSet",
        "@id": "pairs",
        "name": "pairs",
        "description": "Every pair that was kept, without its images.",
        "key": {"@id": "pairs/key"},
        "field": fields,
    }


def _content(name: str) -> dict[str, Any]:
    """One field of all samples, with the key that it is joined on: the part of a member's name before the dot."""
    source = {"fileSet": {"@id": f"{name}-files"}}
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"{name} of every pair that was kept.",
        "key": {"@id": f"{name}/key"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/key",
                "name": "key",
                "description": _INDEX_FIELDS["key"],
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
                "dataType": "sc:ImageObject" if name.startswith("image") else "sc:Text",
                "source": {**source, "extract": {"fileProperty": "content"}},
            },
        ],
    }
