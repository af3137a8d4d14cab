"""What a dataset needs to be published besides what lies below OUT: its own card, a preview, how to cite it."""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from twinset.cards import terms
from twinset.cards.describe import front_matter, kept_by_split, size_category
from twinset.cards.lineage import citations_of
from twinset.cards.rendering import render
from twinset.cards.words_alone import ABSENT
from twinset.contracts.kinds import KINDS
from twinset.contracts.licences.names import SPDX
from twinset.contracts.licences.terms import TERMS
from twinset.contracts.recipe import Recipe
from twinset.contracts.references import entries_in
from twinset.shards.export.generated_pairs import split_schema, write_splits
from twinset.shards.read import read_settings, read_spread, term_counts
from twinset.shards.records import planned_stage
from twinset.shards.storage import layout
from twinset.shards.storage.hub import SUMS, Repository
from twinset.shards.storage.store import Store

PREVIEWS, PREVIEWED = "preview", 100  # their folder, and how many samples one has: some MB
_LISTS = ("language", "task_categories", "tags")

logger = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Part:
    """A subset as it is published.

    card: its text, empty where there is none. front: the metadata that it begins with. kept: samples by split. makes:
    the kind of its samples. citation: BibTeX of what it was made from and with.
    """

    name: str
    card: str
    front: Mapping[str, Any]
    kept: Mapping[str, int]
    terms: terms.TermCounts
    makes: str
    recipe: Recipe
    citation: str


def part_of(store: Store, subset: str) -> Part:
    """What there is to say of a finished subset."""
    recipe, _ = read_settings(store, subset)
    place = f"{subset}/README.md"
    card = "" if store.size(place) is None else store.read(place).decode("utf-8", "replace")
    counts, front, kept = term_counts(store, subset), front_matter(store, subset), kept_by_split(store, subset)
    makes = planned_stage(store, subset).facts["makes"]
    return Part(subset, card, front, kept, counts, makes, recipe, citations_of(recipe, subset))


def incomplete(parts: Iterable[Part]) -> list[str]:
    """What subsets lack that a published dataset needs, each with the remedy."""
    lacking = []
    for part in parts:
        # People may edit the text of a card; in its metadata they could have it load other files.
        if not part.card.startswith(f"---\n{yaml.safe_dump(part.front, sort_keys=False)}---\n"):
            lacking.append(f"{part.name}/README.md: no card with the metadata of this build; remove it and build again")
        if not part.recipe.authors:
            lacking.append("authors: nobody answers for the dataset; set authors, a list of names")
        lacking += terms.lacking(part.name, part.terms)
        if part.recipe.date is None:
            lacking.append("date: the card must say when it was published; set date, as in 2026-11-26")
        if not (part.citation or part.recipe.citation):
            lacking.append(f"{part.name}: nothing to cite; set citation, BibTeX of the text that presents the dataset")
        if ABSENT in part.card:
            lacking.append(
                f"{part.name}: the card lacks what words alone tell; pip install scikit-learn, remove the card"
            )
    return list(dict.fromkeys(lacking))


def write_overview(store: Store, subsets: Iterable[str]) -> None:
    """Write ``README.md``, which lists all subsets, unless its last line tells that a person wrote or edited it."""
    there = b"" if store.size("README.md") is None else store.read("README.md")
    if there and there != _sealed(there.rpartition(b"\n<!--")[0]):
        logger.warning(
            "%s/README.md: not as twinset wrote it, so it is left as it is; remove it to get a new one", store.root
        )
    elif parts := [part_of(store, subset) for subset in subsets]:
        shown = [part.name for part in parts if store.size(layout.meta(part.name, "look.png")) is not None]
        text = dataset_card(parts, shown, "path/to/OUT", None, None)
        store.write("README.md", _sealed(text.encode("utf-8", "replace")))


def _sealed(text: bytes) -> bytes:
    return text + f"\n<!-- written by twinset: {hashlib.sha256(text).hexdigest()} -->\n".encode()


def title_of(parts: Sequence[Part]) -> str:
    """What the dataset is called."""
    return parts[0].recipe.title or parts[0].recipe.name


def authors_of(parts: Iterable[Part]) -> list[str]:
    """Everybody who answers for a subset."""
    return list(dict.fromkeys(author for part in parts for author in part.recipe.authors))


def dataset_card(
    parts: Sequence[Part], previews: Collection[str], place: str, repo: Repository | None, revision: str | None
) -> str:
    """The card of the whole dataset, with a configuration a subset.

    Args:
        previews: subsets that have one.
        place: what ``load_dataset`` opens.
        repo: where it is published; None for a folder.
        revision: that addresses of files name; None where nothing is published.
    """
    recipe, front = parts[0].recipe, _front(parts)
    cited = [part.recipe.citation.strip() for part in parts] + [part.citation for part in parts]
    return render(
        "publication.md.j2",
        front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True),
        title=title_of(parts),
        description=recipe.description if recipe.subsets.keys() <= {part.name for part in parts} else "",
        authors=authors_of(parts),
        parts=parts,
        terms=terms,
        configs={config["config_name"] for config in front["configs"]},
        previews=previews,
        place=place,
        revision=revision if repo else "",
        files=repo.file(revision, "") if repo and revision else "",
        published=revision is not None,
        sums=SUMS,
        citations="\n\n".join(dict.fromkeys(entry for text in cited for entry in entries_in(text))),
    )


def _front(parts: Sequence[Part]) -> dict[str, Any]:
    listed = {name: list(dict.fromkeys(entry for part in parts for entry in part.front[name])) for name in _LISTS}
    configs = []
    for part in parts:
        for config in part.front.get("configs", ()):
            files = [{**file, "path": f"{part.name}/{file['path']}"} for file in config["data_files"]]
            configs.append({**config, "config_name": part.name, "data_files": files})
    # load_dataset takes the format of the first configuration for that of all; others are opened by data_files.
    tarred = [config for config in configs if config["data_files"][0]["path"].endswith(".tar")]
    size = size_category(sum(sum(part.kept.values()) for part in parts))
    about = {"pretty_name": title_of(parts), **terms.hub_licence(_terms_of(parts)), **listed}
    return {**about, "size_categories": [size], "configs": tarred or configs}


def _terms_of(parts: Iterable[Part]) -> terms.TermCounts:
    counts = Counter[tuple[str, str]]()
    for part in parts:
        counts.update(part.terms)
    return counts


def write_preview(store: Store, part: Part, folder: Path) -> bool:
    """Write samples of a subset, evenly spread, as a Parquet file a split with images; False where it has no images."""
    samples = read_spread(store, part.name, PREVIEWED) if part.makes in KINDS else []
    if not samples:
        return False
    kind, splits = KINDS[part.makes], dict[str, list[dict[str, Any]]]()
    images = [role for role in kind.images if any(role in sample.images for sample in samples)]
    for sample in samples:
        pictures = {
            role: {"bytes": image, "path": f"{sample.key}.{kind.image_field(role, sample.extension)}"}
            for role, image in sample.images.items()
        }
        about = {name: getattr(sample.json, name) for name in ("group", *TERMS)}
        row = {"key": sample.key, **pictures, **sample.texts, **about, "json": sample.fields["json"].decode("utf-8")}
        splits.setdefault(sample.json.split, []).append(row)
    schema = split_schema(["key", *images, *kind.texts, "group", *TERMS, "json"], images)
    place = folder / PREVIEWS / part.name
    place.mkdir(parents=True)
    write_splits(splits.items(), schema, place)
    return True


def citation_file(parts: Sequence[Part], repo: Repository | None) -> str:
    """``CITATION.cff`` of the dataset."""
    licences = terms.single_licences(_terms_of(parts))
    return render(
        "CITATION.cff.j2",
        title=title_of(parts),
        authors=authors_of(parts),
        date=parts[0].recipe.date,
        licence=licences[0] if len(licences) == 1 and licences[0] in SPDX else "",  # of several readers could choose
        page=repo.page if repo else "",
    )


def published_croissant(metadata: bytes, part: Part, repo: Repository, revision: str) -> bytes:
    """Croissant metadata of a subset with addresses on the Hub: loaders do not resolve relative ones."""
    document = json.loads(metadata)
    document["url"] = repo.page
    for file in document["distribution"]:
        file["contentUrl"] = repo.file(revision, f"{part.name}/{file['@id']}")
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
