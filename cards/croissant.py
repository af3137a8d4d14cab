"""Croissant 1.0 metadata (JSON-LD) of a finished subset, for search engines and for loaders such as `mlcroissant`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cards.kinds.kind import CardKind
from cards.kinds.registry import CARD_KINDS
from cards.summary import IndexSummary
from manifests.canonical import digest
from manifests.recipe import Subset
from manifests.stage import Stage

MARKER = "files-of-"  # what names of marker folders begin with

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

_COLUMNS = {
    "key": "Key of the sample.",
    "identity": "What the key was made from: the identity of the record at its source.",
    "tar": "The tar that holds it, below the subset.",
    "split": "Split.",
}


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file of the dataset. path: below the subset, with '/'; size: bytes."""

    path: str
    sha256: str
    size: int


def croissant(
    stage: Stage, subset: Subset, summary: IndexSummary, index: FileFacts, tars: Sequence[FileFacts]
) -> dict[str, Any]:
    """The metadata, to be stored in the subset's ``_meta`` folder: addresses are relative to it.

    Record set ``pairs`` (``triplets``, ``templates``) reads the index alone; those named as the fields of a sample
    (``image0``, ``caption0``, ``reference``, ``condition`` …) the tars, each with the key of its sample.
    """
    source, kind, extension = subset.source, CARD_KINDS[subset.source.makes], subset.encoding.format
    several, what = kind.what
    following = f" following {source.paper.title}" if source.paper else ""
    origin = f"{source.verb} {source.reference.title or source.kind}{following}"
    cited = [reference.bibtex for reference in (source.paper, source.reference) if reference and reference.bibtex]
    detour = f"{marker_folder(stage, tars)}/../../"
    metadata: dict[str, Any] = {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": stage.name,
        "description": f"{summary.kept} {several}, {origin}: {what}.",
        "license": source.licence,
        "citeAs": "\n\n".join(dict.fromkeys(cited)),
        "version": "1.0.0",
        "identifier": stage.content,
        "distribution": [
            _file(index, "../", "application/x-parquet"),
            *(_file(tar, detour, "application/x-tar") for tar in tars),
        ],
        "recordSet": [_samples(kind, source.group, summary, index)],
    }
    if tars:
        patterns = {role: f"*.{role}.{extension}" for role in summary.images}
        patterns |= {name: f"*.{name}.txt" for name in kind.sample.texts}
        metadata["distribution"] += [_members(name, pattern, tars) for name, pattern in patterns.items()]
        metadata["recordSet"] += [_content(name, kind) for name in patterns]
    return metadata


def marker_folder(stage: Stage, tars: Sequence[FileFacts]) -> str:
    """Name of an almost empty folder beside the metadata, which addresses of tars pass through.

    mlcroissant unpacks a tar into a cache whose key is the tar's address, and never looks at the tar again: without
    the subset's name and a digest of the tars in it, the tars of one subset would be read as another's, and those of
    the build before as those of this one. A detour through a folder of that name changes the address, not the file.
    """
    return f"{MARKER}{stage.name}-{digest([tar.sha256 for tar in tars])[:16]}"


def _file(file: FileFacts, way: str, encoding: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "contentUrl": f"{way}{file.path}",
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


def _samples(kind: CardKind[Any], group: str, summary: IndexSummary, index: FileFacts) -> dict[str, Any]:
    """The index. Images that no sample has are left out of its columns."""
    name = f"{kind.sample.name}s"
    columns = {**_COLUMNS, "group": f"The {group} that it belongs to; never split over tars or splits."}
    columns |= {column: kind.columns[column] for column in kind.sample.described}
    columns |= {f"{role}_sha256": f"sha256 of the encoded image {role}." for role in summary.images}
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{name}/{column}",
            "name": column,
            "description": description,
            "dataType": "sc:Text",
            "source": {"fileObject": {"@id": index.path}, "extract": {"column": column}},
        }
        for column, description in columns.items()
    ]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"Every {kind.sample.name} that was kept, without its images.",
        "key": {"@id": f"{name}/key"},
        "field": fields,
    }


def _content(name: str, kind: CardKind[Any]) -> dict[str, Any]:
    """One field of all samples, with the key that it is joined on: the part of a member's name before the dot."""
    source = {"fileSet": {"@id": f"{name}-files"}}
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"{name} of every {kind.sample.name} that was kept.",
        "key": {"@id": f"{name}/key"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/key",
                "name": "key",
                "description": _COLUMNS["key"],
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
                "dataType": "sc:ImageObject" if name in kind.sample.images else "sc:Text",
                "source": {**source, "extract": {"fileProperty": "content"}},
            },
        ],
    }
