"""From OUT to a desk and its page: which stages ask people, where answers lie, what links are signed with, sockets."""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from fastapi import FastAPI

from twinset.generators.decisions.answers import form_of
from twinset.manifests.canonical import digest
from twinset.manifests.errors import WrongUse
from twinset.manifests.locations import cache_folder
from twinset.review.access import HOMES, Access, Person, read_secret
from twinset.review.desk import ReviewDesk
from twinset.review.store import AnswerStore
from twinset.review.tasks import ReviewTasks, asking
from twinset.shards.records import stages_in
from twinset.shards.storage.store import Store

MOST_REQUESTS = 200  # at a time; beyond these the server says that it is busy
GRACE_SECONDS = 5  # for requests under way when it is stopped


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def link(access: Access, person: Person, base: str) -> str:
    """The link of a person. base: such as ``http://127.0.0.1:8080``."""
    return f"{base}{HOMES[person.role]}?token={quote(access.token(person))}"


def serve(app: FastAPI, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve until the process is interrupted; a connection that is made before that is answered.

    Args:
        port: 0 for any that is free.
        on_ready: called with the base of links once the port is open.

    Raises:
        WrongUse: the port cannot be opened.
    """
    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host, port), family=family)
    except OSError as error:
        raise WrongUse(f"--host {host} --port {port}: cannot be opened ({error}); name others") from error
    with opened:
        named = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        on_ready(f"http://{named}:{opened.getsockname()[1]}")
        # Its log of requests would hold the tokens of links.
        config = uvicorn.Config(
            app,
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_REQUESTS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        uvicorn.Server(config).run(sockets=[opened])


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
