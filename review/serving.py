"""The page on a port of this machine."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from urllib.parse import quote

from fastapi import FastAPI

from twinset.manifests.errors import WrongUse
from twinset.review.access import HOMES, Access, Person

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
