"""From OUT to a desk and its page: which stages ask people, where answers lie, what links are signed with, sockets."""

import os
import re
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from fastapi import FastAPI

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import cache_folder
from twinset.generators.decisions.answers import EXPORTED
from twinset.review.desk import ReviewDesk
from twinset.review.store import AnswerStore
from twinset.review.tasks import ReviewTasks, stages_that_ask
from twinset.shards.records import stages_in
from twinset.shards.storage.spool import beside, refuse_link
from twinset.shards.storage.store import Store

MOST_CONNECTIONS = 500  # each is an open file, of which a process may usually have 1,024
GRACE_SECONDS = 5  # for requests under way when it is stopped
FOLDER = "_review"


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
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise WrongUse(f"--host {host} --port {port}: cannot be opened ({error}); name others") from error
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        access_log=False,  # it would hold the tokens of links
        log_level="error",  # malformed requests of others fill no log
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    with listening:
        named = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        on_ready(f"http://{named}:{listening.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listening])


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
    # On this machine: below OUT the secret would be known to whoever sent it.
    folder = cache_folder() / "review" / digest(store.root if store.is_remote else os.path.realpath(store.root))
    tasks = ReviewTasks(store, read_secret(folder), only)
    place = next(iter(tasks.now().stages.values())).answers
    if place.suffix == EXPORTED:
        raise WrongUse(
            f"{place}: is an exported file, to which no answers can be added; leave out the setting answers, "
            "build again, and import the file with --import"
        )
    return ReviewDesk(tasks, AnswerStore(place), on_decided)


def read_secret(folder: Path) -> bytes:
    """The secret that links are signed with, made once; removing the file makes all links invalid. Raises `WrongUse`:
    the file is not one.
    """
    path = folder / "secret"
    if not path.exists():
        with beside(path) as unfinished:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="ascii") as stream:
                stream.write(secrets.token_hex(32))
            unfinished.replace(path)
    content = path.read_bytes()
    if not re.fullmatch(rb"[0-9a-f]{64}", content):
        raise WrongUse(f"{path}: not the secret that twinset wrote; remove it, and give everyone the new links")
    return bytes.fromhex(content.decode())
