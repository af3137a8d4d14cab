"""Croissant 1.0 metadata (JSON-LD) of a finished subset, for search engines and for loaders such as `mlcroissant`.

https://docs.mlcommons.org/croissant/docs/croissant-spec.html
"""

import json
from collections.abc import Mapping
from typing import Any

from twinset.cards.kinds import CARD_KINDS
from twinset.cards.kinds.kind import CardKind, IndexSummary
from twinset.cards.lineage import citations_of, described_origin
from twinset.cards.rendering import TEMPLATES
from twinset.cards.terms import licence_pages
from twinset.contracts.recipe import Recipe
from twinset.contracts.stage import Stage

_INDEX = "_meta/index.parquet"

Digest = tuple[str, int]  #: sha256 and size in bytes of a file


def croissant(
    stage: Stage, recipe: Recipe, summary: IndexSummary, index: Digest, tars: Mapping[str, Digest]
) -> dict[str, Any]:
    """The metadata, to be stored in the subset's ``_meta`` folder: addresses are relative to it.

    The one record set, such as ``pairs``, reads the index; its ``tar`` and ``key`` say where files of a sample lie.

    Args:
        stage, recipe, summary: of the subset.
        index: of ``index.parquet``.
        tars: by path below the subset, with '/'.
    """
    source = recipe.origin(stage.name)
    kind = CARD_KINDS[source.makes]
    pages = licence_pages(summary.terms)
    metadata: dict[str, Any] = {
        "@context": json.loads((TEMPLATES / "croissant_context.json").read_text("utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": stage.name,
        "description": f"{summary.kept} {kind.what[0]}, {described_origin(recipe, stage.name)}: {kind.what[1]}.",
        "inLanguage": recipe[stage.name].language,
        "license": pages[0] if len(pages) == 1 else pages,
        "citeAs": recipe.citation or citations_of(recipe, stage.name),
        "version": "1.0.0",
        "identifier": stage.content,
        "distribution": [
            _file(_INDEX, "application/x-parquet", index),
            *(_file(path, "application/x-tar", file) for path, file in tars.items()),
        ],
        "recordSet": [_records(kind, source.group, summary, recipe.made_in(stage.name).encoding.format)],
    }
    if recipe.date:
        metadata["datePublished"] = recipe.date.isoformat()
    if recipe.authors:
        metadata["creator"] = [
            {"@type": "Person" if "," in name else "Organization", "name": name} for name in recipe.authors
        ]
    return metadata


def _file(path: str, encoding: str, file: Digest) -> dict[str, Any]:
    about = {"contentUrl": f"../{path}", "contentSize": f"{file[1]} B", "sha256": file[0]}
    return {"@type": "cr:FileObject", "@id": path, "name": path, "encodingFormat": encoding, **about}


def _records(kind: CardKind, group: str, summary: IndexSummary, extension: str) -> dict[str, Any]:
    """The rows of the index. Images that no sample has are left out of its columns."""
    name, sample = f"{kind.sample.name}s", kind.sample
    fields = [*(sample.image_field(role, extension) for role in summary.images), *map(sample.text_field, sample.texts)]
    columns = {
        "key": "Key of the sample.",
        "identity": "What the key was made from: the identity of the record at its source.",
        "tar": f"The tar that holds it, below the subset, as KEY.{', KEY.'.join([*fields, 'json'])}.",
        "split": "Split.",
        "group": f"The {group} that it belongs to; never split over tars or splits.",
        **{column: kind.columns[column] for column in sample.described},
        "licence": "Licences of what the sample shows, as SPDX names them; AND stands between several.",
        "credit": "Whom to credit.",
        "source_url": "Where it comes from; several addresses have spaces between them.",
        **{f"{role}_sha256": f"sha256 of the encoded image {role}." for role in summary.images},
    }
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"Every {sample.name} that was kept, without its images.",
        "key": {"@id": f"{name}/key"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column}",
                "name": column,
                "description": description,
                "dataType": "sc:Text",
                "source": {"fileObject": {"@id": _INDEX}, "extract": {"column": column}},
            }
            for column, description in columns.items()
        ],
    }
