"""`twinset publish`: a finished dataset for everybody, in a folder or on the Hub, without what its machine wrote."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from twinset.cards.page import write_look
from twinset.cards.publication import (
    Part,
    citation_file,
    dataset_card,
    incomplete,
    part_of,
    published_croissant,
    title_of,
    write_preview,
)
from twinset.cards.terms import CREDITS
from twinset.contracts.canonical import digest, names_in, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds import KINDS
from twinset.shards.read import finished, finished_tars
from twinset.shards.storage import hub, layout
from twinset.shards.storage.spool import temporary_folder
from twinset.shards.storage.store import Store
from twinset.shards.storage.whole_file import new_folder
from twinset.stages.overview import published, verify
from twinset.stages.plan import DESCRIPTIONS

_TEXTS = (".md", ".html", ".json", ".csv", ".cff", ".bib")
_OF_META = {*DESCRIPTIONS, "stage.json", "histograms.png", "look.png", CREDITS}
_PLAN = re.compile(r"\d{5,}\.parquet|shards\.parquet")


def publish(
    out: str | Path, to: str | Path, only: str | Iterable[str] = (), public: bool = False, update: bool = False
) -> dict[str, Any]:
    """Publish a finished dataset after verifying it: whole or not at all; the same call goes on where it was cut off.

    Args:
        out: of the dataset.
        to: ``hf://datasets/ORG/NAME`` (private at first, one commit), or a new folder that is laid out the same.
        only: subsets; all when empty.
        public: make the dataset on the Hub public.
        update: replace what the dataset on the Hub holds.

    Returns:
        ``{"to", "files", "bytes"}``, and of the Hub ``{"page", "tag", "revision", "sent"}``, the files of the commit.
    """
    store, to = Store(str(out)), str(to)
    repo = hub.repository(to) if to.startswith(hub.SCHEME) else None
    subsets = published(store, names_in(only))
    parts = [part_of(store, subset) for subset in subsets]
    _refuse(store, incomplete(parts))
    _refuse(store, (problem for row in verify(store, subsets)["subsets"].values() for problem in row["problems"]))
    with store.tidied(), _folder(store, to, repo) as folder:
        tag = _assemble(store, parts, folder, repo.name if repo else Path(os.path.abspath(to)).name, repo)
        _refuse(store, _named_places(store, parts, folder))
        files = _files(folder)
        about = {"to": to, "files": len(files), "bytes": sum(path.stat().st_size for path in files)}
        if repo is None:
            return about
        message = f"{title_of(parts)}: {sum(sum(part.kept.values()) for part in parts):,} samples"
        return {**about, "page": repo.page, "tag": tag, **hub.upload(repo, folder, tag, message, public, update)}


def _refuse(store: Store, problems: Iterable[object]) -> None:
    """Raise `WrongUse` where there is a problem, with all of them."""
    if lines := [str(problem) for problem in problems]:
        raise WrongUse("\n".join([f"{store.root} is not published; mend these and build it again:", *lines]))


def _folder(store: Store, to: str, repo: hub.Repository | None) -> AbstractContextManager[Path]:
    """Where all is put together: what becomes ``--to``, or, for the Hub, beside OUT, so that links will do."""
    if repo is None:
        return new_folder(to, "--to")
    return temporary_folder() if store.is_remote else store.spool()


def _data(store: Store, subset: str) -> Iterator[str]:
    """The files of a subset that hold its samples and how they came about."""
    yield from (tar for tar, _ in finished_tars(store, subset))
    yield layout.meta(subset, "index.parquet")
    plans = store.names(layout.meta(subset, "plan"))
    yield from (layout.plan(subset, name) for name in plans if _PLAN.fullmatch(name))
    for number, *_ in finished(store, subset).columns("kept"):
        yield layout.rows(subset, number)
        yield layout.receipt(subset, number)


def _beside(store: Store, part: Part) -> Iterator[str]:
    """The other files of a subset that are published, by name: what else lies there is somebody's own."""
    yield f"{part.name}/README.md"
    known = _OF_META - {"index.parquet"} | {*part.recipe[part.name].source.reports}
    for name in store.names(f"{part.name}/{layout.META}"):
        place = layout.meta(part.name, name)
        if name in known or (name.endswith(".png") and f"({layout.META}/{name})" in part.card):
            yield place


def _assemble(store: Store, parts: Sequence[Part], folder: Path, place: str, repo: hub.Repository | None) -> str:
    """Fill the folder; returns a name of its data, which the revision on the Hub gets as a tag."""
    data = [path for part in parts for path in _data(store, part.name)]
    for path in [*data, *(path for part in parts for path in _beside(store, part))]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        _put(store, path, folder / path, linked=repo is not None)
    tag = f"data-{digest([[path, sha256_of_file(folder / path)[0]] for path in data])[:16]}"
    if any(part.makes in KINDS for part in parts):  # written again: nothing vouches for the one below OUT
        shown = Store(str(folder))
        write_look(shown, [part.name for part in parts])
        shown.sweep()
    previews = [part.name for part in parts if write_preview(store, part, folder)]
    for part in parts:
        if repo and (croissant := folder / layout.meta(part.name, "croissant.json")).exists():
            content = published_croissant(croissant.read_bytes(), part, repo, tag)
            croissant.unlink()  # it can be a link to the dataset's own
            croissant.write_bytes(content)
    (folder / "README.md").write_text(dataset_card(parts, previews, place, repo, tag), "utf-8")
    (folder / "CITATION.cff").write_text(citation_file(parts, repo), "utf-8")
    sums = {path.relative_to(folder).as_posix(): sha256_of_file(path)[0] for path in _files(folder)}
    (folder / hub.SUMS).write_text("".join(f"{sha256}  {path}\n" for path, sha256 in sums.items()), "utf-8")
    return tag


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _put(store: Store, path: str, to: Path, linked: bool) -> None:
    place = Path(store.root)
    for name in () if store.is_remote else path.split("/"):
        place /= name
        if place.is_symlink():
            raise WrongUse(f"{place}: a link; what it leads to is not published. Put the file or folder in its place")
    if linked and not store.is_remote:
        with suppress(OSError):  # a file system without links
            os.link(f"{store.root}/{path}", to)
            return
    with store.open(path) as stream, to.open("wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)


def _named_places(store: Store, parts: Sequence[Part], folder: Path) -> Iterator[str]:
    """Texts that name a folder of this machine: home, OUT, and what the recipes read."""
    placed = [each for part in parts for stage in part.recipe.all.values() for each in (stage.source, *stage.filters)]
    places = [str(Path.home()), store.root, *(str(value) for each in placed for _, _, value in each.places())]
    names = {re.escape(place.rstrip("/")) for place in places if re.match(r"/[^/]", place)}
    named = re.compile(rf"(?<![\w.])({'|'.join(names)})(?!\w)" if names else r"(?!)")
    for path in _files(folder):
        if path.suffix in _TEXTS and (place := named.search(path.read_text("utf-8", "replace"))):
            yield f"{path.relative_to(folder)}: names {place[0]}, a folder of this machine; take it out"
