"""From OUT to a desk: which stages ask people, where their answers lie, what links are signed with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from twinset.generators.decisions.answers import form_of
from twinset.manifests.canonical import digest
from twinset.manifests.errors import WrongUse
from twinset.manifests.locations import cache_folder
from twinset.review.access import read_secret
from twinset.review.desk import ReviewDesk
from twinset.review.store import AnswerStore
from twinset.review.tasks import ReviewTasks, asking
from twinset.shards.records import stages_in
from twinset.shards.storage.store import Store

FOLDER = "_review"


def open_desk(out: str, only: Sequence[str] = (), on_enough: Callable[[str], None] | None = None) -> ReviewDesk | None:
    """The desk of the decision stages below OUT; None where no stage asks people.

    Args:
        out: folder or URL of the dataset.
        only: names of stages; all that ask people when empty.
        on_enough: as for `ReviewDesk`.

    Raises:
        WrongUse: nothing was planned below OUT, a named stage asks nobody, a stage cannot be read, or its answers lie
            in a Parquet file.
    """
    store = Store(out)
    if not stages_in(store):
        raise WrongUse(f"{store.root}: holds no stages; run its build first")
    names = [home.rpartition("/")[2] for home in asking(store)]
    for name in only:
        if name not in names:
            has = f"those that do: {', '.join(names)}" if names else "none does"
            raise WrongUse(f"--stage {name}: {store.root} has no such stage that asks people; {has}")
    if not names:
        return None
    tasks = ReviewTasks(store, read_secret(_folder(store)), only)
    tasks.now()
    if tasks.answers is None:
        raise WrongUse("; ".join(f"{name}: {problem}" for name, problem in tasks.problems.items()))
    if form_of(tasks.answers) == "parquet":
        raise WrongUse(
            f"{tasks.answers}: is an exported file, to which no answers can be added; leave out the setting answers, "
            "build again, and import the file with --import"
        )
    return ReviewDesk(tasks, AnswerStore(tasks.answers), on_enough)


def _folder(store: Store) -> Path:
    """Where the secret lies: below OUT, or on this machine for OUT in a bucket."""
    if not store.is_remote:
        return Path(store.root) / FOLDER
    return cache_folder() / "review" / digest(store.root)
