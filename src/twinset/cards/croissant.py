"""Croissant 1.0 metadata (JSON-LD) of a finished subset, for search engines and for loaders such as `mlcroissant`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from twinset.cards.kinds import CARD_KINDS
from twinset.cards.kinds.kind import CardKind, IndexSummary
from twinset.cards.lineage import described_origin
from twinset.cards.terms import croissant_licence
from twinset.contracts.canonical import digest
from twinset.contracts.recipe import Recipe
from twinset.contracts.stage import Stage

MARKER = "files-of-"  # what names of marker folders begin with

# Terms of Croissant's own vocabulary that stand for themselves.
# fmt: off
_TERMS = (
    "citeAs", "column", "dataBiases", "dataCollection", "equivalentProperty", "extract", "field", "fileObject",
    "fileProperty", "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path",
    "personalSensitiveInformation", "recordSet", "references", "regex", "repeated", "replace", "samplingRate",
    "separator", "source", "subField", "transform",
)
# fmt: on
# The context that the specification prescribes: https://docs.mlcommons.org/croissant/docs/croissant-spec.html
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS},
}

_COLUMNS = {
    "key": "Key of the sample.",
    "identity": "What the key was made from: the identity of the record at its source.",
    "tar": "The tar that holds it, below the subset.",
    "split": "Split.",
}

_TERMS_COLUMNS = {
    "licence": "Licences of what the sample shows, as SPDX names them; AND stands between several.",
    "credit": "Whom to credit.",
    "source_url": "Where it comes from; several addresses have spaces between them.",
}


_INDEX = "_meta/index.parquet"

Digest = tuple[str, int]  #: sha256 and size in bytes of a file


def croissant(
    stage: Stage,
    recipe: Recipe,
    summary: IndexSummary,
    index: Digest,
    tars: Mapping[str, Digest],
    citations: str,
) -> dict[str, Any]:
    """The metadata, to be stored in the subset's ``_meta`` folder: addresses are relative to it.

    recipe: that it was planned from. tars: by path below the subset, with '/'. citations: BibTeX of what it was made
    from and with.

    Record set ``pairs`` (``triplets``, ``templates``) reads the index alone; those named as the fields of a sample
    (``image0``, ``caption0``, ``reference``, ``condition`` …) the tars, each with the key of its sample.
    """
    subset, source = recipe[stage.name], recipe.origin(stage.name)
    kind = CARD_KINDS[source.makes]
    several, what = kind.what
    extension = recipe.made_in(stage.name).encoding.format
    origin = described_origin(recipe, source, stage.name)
    detour = f"{marker_folder(stage, tars)}/../../"
    metadata: dict[str, Any] = {
        "@context": dict(sorted(_CONTEXT.items())),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": stage.name,
        "description": f"{summary.kept} {several}, {origin}: {what}.",
        "inLanguage": subset.language,
        "license": croissant_licence(summary.terms),
        "citeAs": recipe.citation or citations,
        **({"datePublished": recipe.date.isoformat()} if recipe.date else {}),
        **({"creator": [_person(one) for one in recipe.authors]} if recipe.authors else {}),
        "version": "1.0.0",
        "identifier": stage.content,
        "distribution": [
            _file(_INDEX, "../", "application/x-parquet", *index),
            *(_file(path, detour, "application/x-tar", *found) for path, found in tars.items()),
        ],
        "recordSet": [_samples(kind, source.group, summary)],
    }
    if tars:
        patterns = {role: f"*.{kind.sample.image_field(role, extension)}" for role in summary.images}
        patterns |= {name: f"*.{kind.sample.text_field(name)}" for name in kind.sample.texts}
        metadata["distribution"] += [_members(name, pattern, tars) for name, pattern in patterns.items()]
        metadata["recordSet"] += [_content(name, kind) for name in patterns]
    return metadata


def marker_folder(stage: Stage, tars: Mapping[str, Digest]) -> str:
    """Name of an almost empty folder beside the metadata, which addresses of tars pass through.

    mlcroissant unpacks a tar into a cache whose key is the tar's address, and never looks at the tar again: without
    the subset's name and a digest of the tars in it, the tars of one subset would be read as another's, and those of
    the build before as those of this one. A detour through a folder of that name changes the address, not the file.
    """
    return f"{MARKER}{stage.name}-{digest([sha256 for sha256, _ in tars.values()])[:16]}"


def _person(name: str) -> dict[str, str]:
    return {"@type": "Person" if "," in name else "Organization", "name": name}


def _node(kind: str, name: str, **values: Any) -> dict[str, Any]:
    """A part of the metadata whose name is its id."""
    return {"@type": f"cr:{kind}", "@id": name, "name": name, **values}


def _file(path: str, way: str, encoding: str, sha256: str, size: int) -> dict[str, Any]:
    address, length = f"{way}{path}", f"{size} B"
    return _node("FileObject", path, contentUrl=address, contentSize=length, encodingFormat=encoding, sha256=sha256)


def _members(name: str, pattern: str, tars: Iterable[str]) -> dict[str, Any]:
    """The members of all tars that hold one field."""
    media = "text/plain" if pattern.endswith(".txt") else f"image/{pattern.rsplit('.', 1)[1].replace('jpg', 'jpeg')}"
    tar_ids = [{"@id": path} for path in tars]
    return _node("FileSet", f"{name}-files", containedIn=tar_ids, encodingFormat=media, includes=pattern)


def _record_set(name: str, description: str, fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return _node("RecordSet", name, description=description, key={"@id": f"{name}/key"}, field=fields)


def _field(records: str, name: str, description: str, source: Mapping[str, Any], holds: str = "sc:Text") -> Any:
    field = _node("Field", f"{records}/{name}", description=description, dataType=holds, source=source)
    return {**field, "name": name}


def _samples(kind: CardKind[Any], group: str, summary: IndexSummary) -> dict[str, Any]:
    """The index. Images that no sample has are left out of its columns."""
    name = f"{kind.sample.name}s"
    columns = {**_COLUMNS, "group": f"The {group} that it belongs to; never split over tars or splits."}
    columns |= {column: kind.columns[column] for column in kind.sample.described}
    columns |= _TERMS_COLUMNS | {f"{role}_sha256": f"sha256 of the encoded image {role}." for role in summary.images}
    fields = [
        _field(name, column, description, {"fileObject": {"@id": _INDEX}, "extract": {"column": column}})
        for column, description in columns.items()
    ]
    return _record_set(name, f"Every {kind.sample.name} that was kept, without its images.", fields)


def _content(name: str, kind: CardKind[Any]) -> dict[str, Any]:
    """One field of all samples, with the key that it is joined on: the part of a member's name before the dot."""
    files = {"fileSet": {"@id": f"{name}-files"}}
    key = {**files, "extract": {"fileProperty": "filename"}, "transform": {"regex": r"^([a-z0-9-]+)\."}}
    content = {**files, "extract": {"fileProperty": "content"}}
    holds = "sc:ImageObject" if name in kind.sample.images else "sc:Text"
    fields = [
        _field(name, "key", _COLUMNS["key"], key),
        _field(name, "content", f"{name} as it is stored.", content, holds),
    ]
    return _record_set(name, f"{name} of every {kind.sample.name} that was kept.", fields)
