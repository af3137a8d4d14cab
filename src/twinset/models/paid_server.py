"""What all models on servers share, of language and of images: place, key, patience, kept answers, ceiling on cost."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Location, cache_folder
from twinset.contracts.recipe.allowed import refuse_unbound_key
from twinset.contracts.source import Need, Place
from twinset.models.device import check_installed
from twinset.models.engines import EngineSettings


def _server(url: str) -> str:
    parts = urlsplit(url)
    # Of plain characters, so that everything that reads it sees the same host; a port above 65535 raises.
    plain = re.fullmatch(r"https?://([\w.-]+|\[[0-9A-Fa-f:.]+\])(:\d+)?(/[!-~]*)?", url, re.ASCII | re.IGNORECASE)
    # A recipe lies beside the dataset: it holds no user or password.
    if not plain or not parts.hostname or parts.port == 0 or "?" in url or "#" in url:
        raise ValueError(
            "write the address of a server in ASCII, such as http://127.0.0.1:8000/v1, without user, password, query "
            "and #; a key comes from api_key_variable"
        )
    return url


class PaidServer(EngineSettings):
    """A base that stands before the others.

    model: its name on the server. base_url: of the API, mostly ending in ``/v1``. api_key_variable: environment
    variable with the key, which is stored nowhere, and sent only where the operator bound it to this server
    (docs/security.md). answers: the folder, below OUT or in twinset's cache, where it is ``answers`` when absent.
    concurrency: requests that wait for an answer at a time. timeout: seconds for one try. retries: of a request that
    met a timeout, a lost connection, an overload or a fault of the server. longest_wait: seconds between two tries, at
    most. max_cost: that all answers may cost, in the unit of the prices.
    """

    model: str = Field(min_length=1)
    base_url: Annotated[str, Place("server", "models"), AfterValidator(_server)]
    api_key_variable: Annotated[str | None, Place("variable", "models")] = Field(
        default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"
    )
    answers: Annotated[Location, Place("cache", "models")] | None = None
    concurrency: int = Field(default=16, ge=1, le=1000)  # connections that the client opens
    timeout: float = Field(default=120, gt=0)
    retries: int = Field(default=6, ge=0, le=100)
    longest_wait: float = Field(default=60, ge=0)
    max_cost: float | None = Field(default=None, gt=0)

    execution: ClassVar[tuple[str, ...]] = (
        *("answers", "api_key_variable", "concurrency", "timeout", "retries", "longest_wait", "max_cost"),
    )

    metered = True

    def api_key(self) -> str:
        """The server's key; ``none`` for a server without one.

        Raises `WrongUse` where the variable holds no key, or the operator has not bound it to this server.
        """
        if self.api_key_variable is None:
            return "none"
        refuse_unbound_key(self.base_url, self.api_key_variable)
        # Files of secrets end with a line break, which no header can hold.
        key = os.environ.get(self.api_key_variable, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            raise WrongUse(
                f"api_key_variable: the environment variable {self.api_key_variable} holds other characters than "
                "printable ASCII, or is absent; set it to the server's key, or leave the setting out"
            )
        return key

    @property
    def answers_folder(self) -> Path:
        """Where answers are kept."""
        return self.answers or cache_folder() / "answers"

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "media" in needs:
            check_installed(key, ("openai",), "language-models")
            try:
                self.api_key()
            except WrongUse as error:
                raise WrongUse(f"{key}.{error}") from None
