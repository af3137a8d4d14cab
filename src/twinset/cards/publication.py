"""What a dataset needs to be published besides what lies below OUT: its own card, a preview, how to cite it."""

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from twinset.cards import terms
from twinset.cards.describe import SIZES
from twinset.cards.lineage import citations_of
from twinset.cards.rendering import render
from twinset.cards.words_alone import ABSENT
from twinset.contracts.candidate import SPLIT
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.licences.names import SPDX
from twinset.contracts.licences.terms import TERMS
from twinset.contracts.recipe import Recipe
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.contracts.references import entries_in
from twinset.shards.export.generated_pairs import split_schema, write_splits
from twinset.shards.read import finished, read_settings, read_spread, term_counts
from twinset.shards.records import planned_stage
from twinset.shards.storage import layout
from twinset.shards.storage.hub import SUMS, Repository
from twinset.shards.storage.store import Store

PREVIEWS, PREVIEWED = "preview", 100  # their folder, and how many samples one has: some MB
OVERVIEW = "log/overview"  # sha256 of the README of all subsets
_OF_SUBSET = re.compile(rf"{SPLIT[1:-1]}/\*\.tar|_meta/index\.parquet")  # what a configuration of a card may load
_LISTS = ("language", "task_categories", "tags")

logger = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Part:
    """A subset as it is published.

    card: its text. front: its card's metadata. kept: samples by split. terms: samples by licence and credit. makes: the
    kind of its samples. recipe: that it was built with. citation: BibTeX of what it was made from and with.
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
    """What there is to say of a finished subset; `WrongUse` where its card is absent or has no metadata."""
    place = f"{subset}/README.md"
    recipe, _ = read_settings(store, subset)
    try:
        card = store.read(place).decode("utf-8")
        front = load_yaml(card.split("---\n", 2)[1])
        if problem := _misshapen(front):
            raise ValueError(problem)
    except (OSError, ValueError, IndexError, yaml.YAMLError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise WrongUse(f"{store.root}/{place}: no card with metadata ({said}); remove it and build again") from error
    kept = Counter[str]()
    for _, split, count in finished(store, subset).columns("split", "kept"):
        kept[split] += count
    counts = term_counts(store, subset)
    makes, citation = planned_stage(store, subset).facts["makes"], citations_of(recipe, subset)
    return Part(subset, card, front, +kept, counts, makes, recipe, citation)


def _misshapen(front: Any) -> str:
    """What is wrong with a card's metadata, in which somebody may have written; empty where nothing is."""
    if not isinstance(front, dict):
        return "the metadata are not a mapping"
    for name in _LISTS:
        value = front.get(name, [])
        if not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            return f"{name} is not a list of words"
    configs = front.get("configs", [])
    for one in configs if isinstance(configs, list) else [None]:
        files = one.get("data_files") if isinstance(one, dict) else None
        paths = [str(file.get("path") if isinstance(file, dict) else "") for file in files or ()]
        if not (isinstance(files, list) and paths and all(map(_OF_SUBSET.fullmatch, paths))):
            return "configs is not a list with data_files, each a split and SPLIT/*.tar or _meta/index.parquet"
    return ""


def incomplete(parts: Iterable[Part]) -> list[str]:
    """What the cards lack that a published dataset needs, each with the key of the recipe to set."""
    found = []
    for part in parts:
        if not part.recipe.authors:
            found.append("authors: nobody answers for the dataset; set authors, a list of names")
        found += terms.lacking(part.name, part.terms)
        if part.recipe.date is None:
            found.append("date: the card must say when it was published; set date, as in 2026-11-26")
        if not (part.citation or part.recipe.citation):
            found.append(f"{part.name}: nothing to cite; set citation, BibTeX of the text that presents the dataset")
        if ABSENT in part.card:
            found.append(
                f"{part.name}: its card lacks what words alone tell; pip install scikit-learn, remove the card"
            )
    return list(dict.fromkeys(found))


def write_overview(store: Store, subsets: Iterable[str]) -> None:
    """Write ``README.md``, which lists the subsets whose cards can be read, and loads each by its name.

    One that a person wrote or edited stays as it is.
    """
    parts, known, subsets = list[Part](), set[str](), list(subsets)
    for one in subsets:
        with suppress(FileNotFoundError):
            known |= {*store.read(layout.meta(one, OVERVIEW)).decode("ascii", "replace").split()}
        with suppress(WrongUse):  # of a card that somebody changed
            parts.append(part_of(store, one))
    there = "" if store.size("README.md") is None else store.sha256("README.md")[0]
    if there and there not in known:
        logger.warning(
            "%s/README.md: not as twinset wrote it, so it is left as it is; remove it to get a new one", store.root
        )
    elif parts:
        shown = [part.name for part in parts if store.size(layout.meta(part.name, "look.png")) is not None]
        text = dataset_card(parts, shown, "path/to/OUT", None, None).encode("utf-8", "replace")
        # With the one before it: a build that is killed before the last line leaves that.
        # In each subset: any of them may be removed.
        for one in subsets:
            store.write(layout.meta(one, OVERVIEW), f"{hashlib.sha256(text).hexdigest()}\n{there}\n".encode())
        store.write("README.md", text)


def title_of(parts: Sequence[Part]) -> str:
    """What the dataset is called."""
    return parts[0].recipe.title or parts[0].recipe.name


def dataset_card(
    parts: Sequence[Part], previews: Collection[str], place: str, repo: Repository | None, revision: str | None
) -> str:
    """The card of the whole dataset, with a configuration a subset.

    Args:
        parts: its subsets.
        previews: subsets that have one.
        place: what ``load_dataset`` opens.
        repo: where it is published; None for a folder.
        revision: that addresses of files name; None where nothing is published.
    """
    title, recipe = title_of(parts), parts[0].recipe
    front = _front(parts, title)
    cited = [part.recipe.citation.strip() for part in parts] + [part.citation for part in parts]
    return render(
        "publication.md.j2",
        front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True),
        title=title,
        description=recipe.description if recipe.subsets.keys() <= {part.name for part in parts} else "",
        authors=authors_of(parts),
        parts=parts,
        terms=terms,
        configs={one["config_name"] for one in front["configs"]},
        previews=previews,
        place=place,
        revision=revision if repo else "",
        files=repo.file(revision, "") if repo and revision else "",
        published=revision is not None,
        sums=SUMS,
        citations="\n\n".join(dict.fromkeys(one for text in cited for one in entries_in(text))),
    )


def authors_of(parts: Iterable[Part]) -> list[str]:
    """Everybody who answers for a subset."""
    return list(dict.fromkeys(author for part in parts for author in part.recipe.authors))


def _front(parts: Sequence[Part], title: str) -> dict[str, Any]:
    kept = sum(sum(part.kept.values()) for part in parts)
    licence = terms.hub_licence(_terms_of(parts))
    listed = {name: list(dict.fromkeys(one for part in parts for one in part.front.get(name, ()))) for name in _LISTS}
    size = next((name for limit, name in SIZES if kept < limit), "1M<n<10M")
    configs = []
    for part in parts:
        for config in part.front.get("configs", ()):
            files = [{**one, "path": f"{part.name}/{one['path']}"} for one in config["data_files"]]
            configs.append({**config, "config_name": part.name, "data_files": files})
    # load_dataset takes the format of the first configuration for that of all; others are opened by data_files.
    tarred = [one for one in configs if one["data_files"][0]["path"].endswith(".tar")]
    return {"pretty_name": title, **licence, **listed, "size_categories": [size], "configs": tarred or configs}


def _terms_of(parts: Iterable[Part]) -> terms.TermCounts:
    found = Counter[tuple[str, str]]()
    for part in parts:
        found.update(part.terms)
    return found


def write_preview(store: Store, part: Part, folder: Path) -> bool:
    """Write samples of a subset, evenly spread, as a Parquet file a split with images; False where it has no images."""
    samples = read_spread(store, part.name, PREVIEWED) if part.makes in KINDS else []
    if not samples:
        return False
    kind, splits = KINDS[part.makes], dict[str, list[dict[str, Any]]]()
    images = [role for role in kind.images if any(role in one.images for one in samples)]
    for one in samples:
        splits.setdefault(one.json.split, []).append(_row(one, images))
    schema = split_schema(["key", *images, *kind.texts, "group", *TERMS, "json"], images)
    place = folder / PREVIEWS / part.name
    place.mkdir(parents=True)
    write_splits(splits.items(), schema, place)
    return True


def _row(one: Stored[Any], images: Iterable[str]) -> dict[str, Any]:
    pictures = {
        role: {"bytes": one.images[role], "path": f"{one.key}.{one.kind.image_field(role, one.extension)}"}
        for role in images
        if role in one.images
    }
    about = {name: getattr(one.json, name) for name in ("group", *TERMS)}
    return {"key": one.key, **pictures, **one.texts, **about, "json": one.fields["json"].decode("utf-8")}


def citation_file(parts: Sequence[Part], repo: Repository | None) -> str:
    """``CITATION.cff`` of the dataset."""
    people = []
    for author in authors_of(parts):
        family, comma, given = (text.strip() for text in author.partition(","))
        people.append({"family-names": family, "given-names": given} if comma else {"name": author})
    about: dict[str, Any] = {"cff-version": "1.2.0", "title": title_of(parts), "type": "dataset", "authors": people}
    if date := parts[0].recipe.date:
        about["date-released"] = date
    licences = terms.single_licences(_terms_of(parts))
    if len(licences) == 1 and licences[0] in SPDX:  # several would mean that readers choose one
        about["license"] = licences[0]
    about["message"] = "If you use this dataset, cite it and the works that its card lists."
    return yaml.safe_dump({**about, **({"url": repo.page} if repo else {})}, sort_keys=False, allow_unicode=True)


def published_croissant(metadata: bytes, part: Part, repo: Repository, revision: str) -> bytes:
    """Croissant metadata of a subset with addresses on the Hub: loaders do not resolve relative ones."""
    found = json.loads(metadata)
    found["url"] = repo.page
    for one in found["distribution"]:
        if "contentUrl" in one:
            one["contentUrl"] = repo.file(revision, f"{part.name}/{one['@id']}")
    return (json.dumps(found, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
