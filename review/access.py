"""Who may use the page, and how much: signed links, cookies, and bounds of requests."""

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from itsdangerous import BadSignature, URLSafeSerializer

from twinset.generators.decisions.answers import NAME
from twinset.manifests.errors import WrongUse

Role = Literal["annotator", "admin"]

ADMIN = "admin"  # the name that answers of the admin are stored under; no annotator has it
SECRET_BYTES = 32
LARGEST_REQUEST = 4096  # bytes of a body; an answer has some 200
#: Requests a second, and at once. A person gives an answer a second at best; a page loads some twenty images at once.
CHANGES, REQUESTS = (20.0, 40), (200.0, 400)
MOST_CLIENTS = 1000

HOMES: Mapping[Role, str] = {"annotator": "/", "admin": "/admin"}
CSRF_HEADER = "x-csrf-token"

#: Nothing from another host, no script or style within a page, in nobody's frame.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a valid link."""

    name: str
    role: Role


class Refused(Exception):
    """A request that is not served. status: of HTTP; words: for the person; wait: seconds until another try."""

    def __init__(self, status: int, words: str, wait: float = 0.0) -> None:
        super().__init__(words)
        self.status, self.words, self.wait = status, words, wait


def read_secret(folder: Path) -> bytes:
    """The secret that links are signed with, made once; removing the file makes all links invalid. Raises `WrongUse`:
    the file is not one, or others can read it.
    """
    path = folder / "secret"
    folder.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".secret.{os.getpid()}.{secrets.token_hex(4)}")
    if not path.exists():
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as stream:
                stream.write(secrets.token_hex(SECRET_BYTES).encode())
                stream.flush()
                os.fsync(stream.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(made, path)  # unlike a rename it leaves the secret of another server that started just now
        finally:
            made.unlink()
    if path.stat().st_mode & 0o077:
        raise WrongUse(f"{path}: others can read it and so sign links; chmod 600 it, or remove it for new links")
    content = path.read_bytes()
    if not re.fullmatch(rb"[0-9a-f]{%d}" % (2 * SECRET_BYTES), content):
        raise WrongUse(f"{path}: not the secret that twinset wrote; remove it, and give everyone the new links")
    return bytes.fromhex(content.decode())


class Access:
    """Links and cookies of people, and how fast each may ask.

    Args:
        secret: what links are signed with.
        annotators: names of those who have a link.
        clock: seconds that only grow.
        behind_https: whether people reach the page by HTTPS alone, at a proxy: cookies are then never sent without.
            What a request itself says of that (``X-Forwarded-Proto``) anybody can write.

    Raises:
        WrongUse: a name is not one.
    """

    def __init__(
        self,
        secret: bytes,
        annotators: Collection[str],
        clock: Callable[[], float] = time.monotonic,
        behind_https: bool = False,
    ) -> None:
        self.behind_https = behind_https
        for name in annotators:
            if not NAME.fullmatch(name) or name == ADMIN:
                raise WrongUse(
                    f"--annotators {name!r}: write letters, digits, '.', '-', '_', '@', 64 at most, and not {ADMIN!r}"
                )
        self.annotators = tuple(dict.fromkeys(annotators))
        self._secret = secret
        # Browsers do not tell ports apart: pages of two datasets on one host would take each other's cookies.
        self._suffix = hashlib.sha256(b"cookie" + secret).hexdigest()[:8]
        self._signer = URLSafeSerializer(secret, salt="twinset review", signer_kwargs={"digest_method": hashlib.sha256})
        self._clock = clock
        self._spent: dict[tuple[float, int], OrderedDict[str, tuple[float, float]]] = {}

    def token(self, person: Person) -> str:
        """The token of a link: the same on every start."""
        return str(self._signer.dumps([person.role, person.name]))

    def person(self, token: str | None, role: Role) -> Person:
        """Who a token is of; raises `Refused` (401, or 403 where it is of another role or somebody without a link)."""
        words = "Open the link that you were given; it ends in a long token."
        if not token:
            raise Refused(401, words)
        try:
            found: Any = self._signer.loads(token)
        except BadSignature as error:
            raise Refused(401, words) from error
        person = Person(found[1], found[0])
        if person.role != role:
            raise Refused(403, f"This is not the page of your link: yours is for {person.role}s.")
        if role == "annotator" and person.name not in self.annotators:
            raise Refused(403, f"{person.name} has no link to this page any more; ask who sent it.")
        return person

    def cookie(self, role: Role) -> str:
        """The name of the cookie that holds a role's token."""
        return f"twinset_{role}_{self._suffix}"

    def csrf(self, person: Person) -> str:
        """What a page of this person sends with each change; another site cannot know it."""
        return hmac.new(self._secret, f"csrf\0{person.role}\0{person.name}".encode(), hashlib.sha256).hexdigest()

    def check_csrf(self, person: Person, given: str | None) -> None:
        """Raise `Refused` (403) unless a change comes from a page of this person."""
        if not hmac.compare_digest(self.csrf(person).encode(), (given or "").encode("utf-8", "replace")):
            raise Refused(403, "This request does not come from the page; reload it.")

    def admit(self, client: str, bound: tuple[float, int]) -> None:
        """Count a request of a client; raises `Refused` (429) when they come too fast.

        A token bucket (RFC 2697 has the idea): it holds ``bound[1]`` requests and fills by ``bound[0]`` a second.
        """
        rate, most = bound
        clients = self._spent.setdefault(bound, OrderedDict())
        now = self._clock()
        left, before = clients.pop(client, (float(most), now))
        left = min(float(most), left + rate * (now - before))
        clients[client] = max(left - 1.0, 0.0) if left >= 1.0 else left, now
        if len(clients) > MOST_CLIENTS:
            clients.popitem(last=False)
        if left < 1.0:
            raise Refused(429, "Too many requests; wait a second.", (1.0 - left) / rate)
