"""Who may use the page, and how much: signed links, cookies, and bounds of requests."""

import hashlib
import hmac
import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from itsdangerous import BadSignature, URLSafeSerializer

from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import NAME
from twinset.review.links import Links

Role = Literal["annotator", "admin"]
Token = Literal["annotator", "admin", "study", "image"]

ADMIN = "admin"  # the name on the link of the admin; no annotator has it
LARGEST_REQUEST = 4096  # bytes of a body; an answer has some 200
#: Requests a second, and at once, of a person. One gives an answer a second at best; a page loads some twenty images at
#: once.
CHANGES, REQUESTS = (20.0, 40), (200.0, 400)
#: The same of an address, for requests without a valid link: behind a proxy all strangers have one address, and so have
#: the annotators, whose requests are not counted here.
STRANGERS = (20.0, 100)
MOST_CLIENTS = 1000
LINK_DAYS = 30
#: Whose links can be withdrawn besides people's: a study's, by which participants come, and those of exported images.
STUDY, IMAGES = "study:link", "exported:images"
PARTICIPANT = re.compile(r"[0-9a-f]{24}")  # as Prolific names people
PARTICIPANT_KEY = "PROLIFIC_PID"  # in the address of who comes by a study's link
MOST_PARTICIPANTS = 2000  # the file of links has room for many more

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


def address_of(client: Sequence[Any] | None) -> str:
    """What requests and connections without a login are counted by: the client's address, of IPv6 its first 64 bits,
    all of which one host may use.
    """
    host = str(client[0]) if client else ""
    return str(ipaddress.ip_network((host, 64), strict=False)) if ":" in host and "%" not in host else host


class Access:
    """Links and cookies of people, and how fast each may ask.

    Args:
        secret: what links are signed with.
        annotators: names of those who have a link.
        clock: seconds that only grow.
        links: whose links were withdrawn.
        days: after which a link ends.
        now: seconds since 1970.
        study: the code that tells Prolific that a participant is done; None: no participants come.
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
        links: Links | None = None,
        days: float = LINK_DAYS,
        now: Callable[[], float] = time.time,
        study: str | None = None,
    ) -> None:
        self.study = study
        self.behind_https, self.seconds = behind_https, round(days * 86_400)
        for name in annotators:
            if not NAME.fullmatch(name) or name == ADMIN:
                raise WrongUse(
                    f"--annotators {name!r}: write letters, digits, '.', '-', '_', '@', 64 at most, and not {ADMIN!r}"
                )
        self.annotators = tuple(dict.fromkeys(annotators))
        self._links, self._now = links or Links(), now
        self._links.give((*self.annotators, ADMIN))
        self._secret = secret
        # Browsers do not tell ports apart: pages of two datasets on one host would take each other's cookies.
        self._suffix = hashlib.sha256(b"cookie" + secret).hexdigest()[:8]
        # The salt changes with what a token holds: those of before had no end.
        self._signer = URLSafeSerializer(
            secret, salt="twinset review: links with an end", signer_kwargs={"digest_method": hashlib.sha256}
        )
        self._clock = clock
        self._spent: dict[tuple[float, int], OrderedDict[str, tuple[float, float]]] = {}

    def token(self, person: Person) -> str:
        """The token of a new link."""
        return self._signed(person.role, person.name, person.name)

    def study_token(self) -> str:
        """The token of the link that all participants of a study get."""
        self._links.give((STUDY,))
        return self._signed("study", STUDY, STUDY)

    def image_token(self, image: str) -> str:
        """The token by which an image of an exported file is served. image: what the page calls it."""
        self._links.give((IMAGES,))
        return self._signed("image", image, IMAGES)

    def image(self, token: str) -> str:
        """What the page calls the image of a token; raises `Refused`: 401, or 403 where it does not hold any more."""
        return self._checked(token, "image", IMAGES)

    def enter(self, token: str, role: Role, participant: str | None) -> tuple[Person, str]:
        """Who comes by a link, and the token that is theirs; raises `Refused` as `person`.

        Args:
            participant: as the address names who comes by a study's link; None for a person's own link.
        """
        if self.study is None or role != "annotator" or participant is None:
            return self.person(token, role), token
        self._checked(token, "study", STUDY)
        if not PARTICIPANT.fullmatch(participant):
            raise Refused(403, f"{PARTICIPANT_KEY} in the address is not an id of Prolific; open the study there.")
        if not self.participates(participant) or self._links.withdrawn(participant):
            raise Refused(403, f"{participant} has no link to this page any more; ask who sent it.")
        known = self._links.names()
        if participant not in known and sum(map(self.participates, known)) >= MOST_PARTICIPANTS:
            raise Refused(403, "This study has all its participants.")
        self._links.give((participant,))
        person = Person(participant, "annotator")
        return person, self.token(person)

    def participates(self, name: str) -> bool:
        """Whether a name is that of a participant of the study that is served."""
        return self.study is not None and PARTICIPANT.fullmatch(name) is not None and name not in self.annotators

    def has_link(self, name: str) -> bool:
        """Whether an annotator of this name can come."""
        return name in self.annotators or self.participates(name)

    def person(self, token: str | None, role: Role) -> Person:
        """Who a token is of; raises `Refused`: 401, or 403 where it is of another role or does not hold any more."""
        name = self._checked(token, role)
        if role == "annotator" and not self.has_link(name):
            raise Refused(403, f"{name} has no link to this page any more; ask who sent it.")
        return Person(name, role)

    def _signed(self, kind: Token, name: str, withdrawn_as: str) -> str:
        until = round(self._now()) + self.seconds
        return str(self._signer.dumps([kind, name, until, self._links.withdrawn(withdrawn_as)]))

    def _checked(self, token: str | None, kind: Token, withdrawn_as: str = "") -> str:
        """The name in a token of a kind that holds still."""
        words = "Open the link that you were given; it ends in a long token."
        if not token:
            raise Refused(401, words)
        try:
            found: Any = self._signer.loads(token)
        except BadSignature as error:
            raise Refused(401, words) from error
        has, name, until, withdrawn = found
        if has != kind:
            raise Refused(403, f"This is not the page of your link: yours is for {has}s.")
        if self._now() >= until:
            raise Refused(403, "This link has come to its end; ask who sent it for a new one.")
        if withdrawn != self._links.withdrawn(withdrawn_as or name):
            raise Refused(403, f"{withdrawn_as or name} has no link to this page any more; ask who sent it.")
        return str(name)

    def cookie(self, person: Person) -> str:
        """The name of the cookie that holds a person's token: the link of one replaces no other's."""
        named = hmac.new(self._secret, f"cookie\0{person.name}".encode(), hashlib.sha256).hexdigest()[:8]
        return f"{self._cookies(person.role)}{named}"

    def _cookies(self, role: Role) -> str:
        return f"twinset_{role}_{self._suffix}_"

    def people(self, cookies: Mapping[str, str], role: Role) -> list[Person]:
        """Who uses a browser in a role, by its cookies; several where it was opened with several links. Raises
        `Refused` where nobody does.
        """
        found, refused = [], Refused(401, "Open the link that you were given; it ends in a long token.")
        for name, token in cookies.items():
            if name.startswith(self._cookies(role)):
                try:
                    found.append(self.person(token, role))
                except Refused as error:
                    refused = error
        if not found:
            raise refused
        return found

    def csrf(self, person: Person) -> str:
        """What a page of this person sends with each change; another site cannot know it."""
        return hmac.new(self._secret, f"csrf\0{person.role}\0{person.name}".encode(), hashlib.sha256).hexdigest()

    def sender(self, people: Sequence[Person], given: str | None) -> Person:
        """Whose page a request comes from, by what it was given to send (`csrf`); raises `Refused` (403)."""
        for person in people:
            if hmac.compare_digest(self.csrf(person).encode(), (given or "").encode("utf-8", "replace")):
                return person
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
