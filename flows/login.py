"""A warning for an API of Prefect that anybody on the network can use: who creates a deployment there runs commands on
the workers.
"""

import sys
from functools import cache
from urllib.parse import urlsplit

import httpx
from prefect.settings import PREFECT_API_URL

from twinset.contracts.locations import is_loopback

SECONDS = 5.0  # that a server may take to answer; one that does not is not warned of


def warn_without_login() -> None:
    """Say on stderr, once a process, if the API that it uses asks for no login and other machines reach it."""
    if url := PREFECT_API_URL.value():
        _warn(url.rstrip("/"))


@cache
def _warn(url: str) -> None:
    if is_loopback(urlsplit(url).hostname or ""):
        return
    try:
        # Without the login that this process may have: what matters is what others get.
        is_open = httpx.get(f"{url}/admin/version", timeout=SECONDS).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return
    if is_open:
        print(
            f"warning: Prefect's API at {url} asks for no login: all who reach it, and web pages that they open, can "
            "run commands on the workers; set PREFECT_SERVER_API_AUTH_STRING for the server, and "
            "PREFECT_API_AUTH_STRING for all that use it (docs/cluster.md)",
            file=sys.stderr,
            flush=True,
        )
