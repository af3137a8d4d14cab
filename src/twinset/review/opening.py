"""From OUT to a desk and its page: which stages ask people, where answers lie, what links are signed with, sockets."""

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi import FastAPI

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import cache_folder
from twinset.generators.decisions.answers import EXPORTED
from twinset.review.access import HOMES, PARTICIPANT_KEY, Access, Person
from twinset.review.desk import ReviewDesk
from twinset.review.links import Links, read_secret
from twinset.review.store import AnswerStore
from twinset.review.tasks import ReviewTasks, stages_that_ask
from twinset.shards.records import stages_in
from twinset.shards.storage.spool import refuse_link
from twinset.shards.storage.store import Store

if TYPE_CHECKING:
    import uvicorn

MOST_CONNECTIONS = 500  # each is an open file, of which a process may usually have 1,024
GRACE_SECONDS = 5  # for requests under way when it is stopped


def link(access: Access, person: Person, base: str) -> str:
    """The link of a person. base: such as ``http://127.0.0.1:8080``."""
    return f"{base}{HOMES[person.role]}?token={quote(access.token(person))}"


def study_link(access: Access, base: str) -> str:
    """The address to give Prolific, which puts in who comes. base: as for `link`."""
    filled = "&".join(f"{name}={{{{%{name}%}}}}" for name in (PARTICIPANT_KEY, "STUDY_ID", "SESSION_ID"))
    return f"{base}{HOMES['annotator']}?token={quote(access.study_token())}&{filled}"


def serve(app: FastAPI, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve until the process is interrupted; a connection that is made before that is answered.

    Args:
        port: 0 for any that is free.
        on_ready: called with the base of links once the port is open.

    Raises:
        WrongUse: the port cannot be opened.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host, port), family=family)
    except OSError as error:
        raise WrongUse(f"--host {host} --port {port}: cannot be opened ({error}); name others") from error
    with opened:
        named = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        on_ready(f"http://{named}:{opened.getsockname()[1]}")
        server_of(app).run(sockets=[opened])


def server_of(app: FastAPI) -> "uvicorn.Server":
    """A server of the page."""
    import uvicorn

    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        access_log=False,  # it would hold the tokens of links
        log_level="error",  # what strangers send wrongly fills no log
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)


FOLDER = "_review"


def open_desk(out: str, only: Sequence[str] = (), on_decided: Callable[[str], None] | None = None) -> ReviewDesk | None:
    """The desk of the decision stages below OUT; None where no stage asks people.

    Args:
        out: folder or URL of the dataset.
        only: names of stages; all that ask people when empty.
        on_decided: as for `ReviewDesk`.

    Raises:
        WrongUse: nothing was planned below OUT, a named stage asks nobody, a stage cannot be read, or its answers lie
            in a Parquet file.
    """
    store = Store(out)
    if not stages_in(store):
        raise WrongUse(f"{store.root}: holds no stages; run its build first")
    names = [home.rpartition("/")[2] for home in stages_that_ask(store)]
    for name in only:
        if name not in names:
            has = f"those that do: {', '.join(names)}" if names else "none does"
            raise WrongUse(f"--stage {name}: {store.root} has no such stage that asks people; {has}")
    if not names:
        return None
    if not store.is_remote:
        refuse_link(Path(store.root) / FOLDER)
    tasks = ReviewTasks(store, read_secret(_folder(store)), only)
    tasks.now()
    if tasks.answers is None:
        raise WrongUse("; ".join(f"{name}: {problem}" for name, problem in tasks.problems.items()))
    if tasks.answers.suffix == EXPORTED:
        raise WrongUse(
            f"{tasks.answers}: is an exported file, to which no answers can be added; leave out the setting answers, "
            "build again, and import the file with --import"
        )
    return ReviewDesk(tasks, AnswerStore(tasks.answers), on_decided)


def open_links(out: str) -> Links:
    """Who has links to the page of OUT. Raises `WrongUse`: the file is not one of links."""
    return Links(_folder(Store(out)))


def _folder(store: Store) -> Path:
    """Where secret and links lie: on this machine. Below OUT they would be known to whoever sent it."""
    return cache_folder() / "review" / digest(store.root if store.is_remote else os.path.realpath(store.root))
