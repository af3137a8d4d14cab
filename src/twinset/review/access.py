"""Who may use the page: signed links, cookies, and the proof that a change comes from the page itself."""

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from itsdangerous import BadData, SignatureExpired, URLSafeTimedSerializer

from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import NAME

Role = Literal["annotator", "admin"]

ADMIN = "admin"  # the name on the link of the admin; no annotator has it
STUDY = "study"  # stands for name and role on the link by which all participants of a study come
LINK_DAYS = 30
PARTICIPANT = re.compile(r"[0-9a-f]{24}")  # as Prolific names people
PARTICIPANT_KEY = "PROLIFIC_PID"  # in the address of who comes by a study's link
HOMES: Mapping[Role, str] = {"annotator": "/", "admin": "/admin"}


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a valid link."""

    name: str
    role: Role


class Refused(Exception):
    """A request that is not served. status: of HTTP; words: for the person."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


def check_annotator(option: str, name: str) -> None:
    """Raise `WrongUse` for what is no name of an annotator. option: of the command line."""
    if not NAME.fullmatch(name) or name == ADMIN:
        allowed = f"letters, digits, '.', '-', '_', '@', 64 at most, and not {ADMIN!r}"
        raise WrongUse(f"{option} {name!r}: write {allowed}")


class Access:
    """Links and cookies of people.

    Args:
        secret: what links are signed with.
        annotators: names of those who have a link.
        days: after which a link ends.
        behind_https: whether people reach the page by HTTPS alone, at a proxy: cookies are then never sent without.
        study: the code that tells Prolific that a participant is done; None: no participants come.

    Raises:
        WrongUse: an annotator's name is not valid.
    """

    def __init__(
        self,
        secret: bytes,
        annotators: Collection[str],
        days: float = LINK_DAYS,
        behind_https: bool = False,
        study: str | None = None,
    ) -> None:
        for name in annotators:
            check_annotator("--annotators", name)
        self.annotators = tuple(dict.fromkeys(annotators))
        self.seconds, self.behind_https, self.study = round(days * 86_400), behind_https, study
        self._secret = secret
        self._signer = URLSafeTimedSerializer(
            secret, salt="twinset review", signer_kwargs={"digest_method": hashlib.sha256}
        )

    def token(self, person: Person) -> str:
        """The token of a person's link."""
        return str(self._signer.dumps([person.role, person.name]))

    def link(self, person: Person, base: str) -> str:
        """The link of a person. base: such as ``http://127.0.0.1:8080``."""
        return f"{base}{HOMES[person.role]}?token={quote(self.token(person))}"

    def study_link(self, base: str) -> str:
        """The address to give Prolific, which fills in who comes. base: as for `link`."""
        token = str(self._signer.dumps([STUDY, STUDY]))
        filled = "&".join(f"{name}={{{{%{name}%}}}}" for name in (PARTICIPANT_KEY, "STUDY_ID", "SESSION_ID"))
        return f"{base}{HOMES['annotator']}?token={quote(token)}&{filled}"

    def enter(self, token: str, role: Role, participant: str | None) -> tuple[Person, str]:
        """Who comes by a link, and the token that is theirs; raises `Refused` as `person`.

        Args:
            participant: as the address names who comes by a study's link; None for a person's own link.
        """
        if self.study is None or role != "annotator" or participant is None:
            return self.person(token, role), token
        self._name_in(token, STUDY)
        if not self.participates(participant):
            raise Refused(403, f"{PARTICIPANT_KEY} in the address is not an id of Prolific; open the study there.")
        person = Person(participant, "annotator")
        return person, self.token(person)

    def participates(self, name: str) -> bool:
        """Whether a name is that of a participant of the study that is served."""
        return self.study is not None and PARTICIPANT.fullmatch(name) is not None and name not in self.annotators

    def has_link(self, name: str) -> bool:
        """Whether an annotator of this name can come."""
        return name in self.annotators or self.participates(name)

    def person(self, token: str | None, role: Role) -> Person:
        """Whose token it is; raises `Refused`: 401 without a valid one, 403 of another role or after its end."""
        name = self._name_in(token, role)
        if role == "annotator" and not self.has_link(name):
            raise Refused(403, f"{name} has no link to this page any more; ask who sent it.")
        return Person(name, role)

    def _name_in(self, token: str | None, role: str) -> str:
        """The name in a token of a role."""
        try:
            owned, name = self._signer.loads(token or "", max_age=self.seconds)
        except SignatureExpired as error:
            raise Refused(403, "This link has come to its end; ask who sent it for a new one.") from error
        except BadData as error:
            raise Refused(401, "Open the link that you were given; it ends in a long token.") from error
        if owned != role:
            raise Refused(403, "This is not the page of your link; open the link just as you were given it.")
        return str(name)

    @property
    def dataset(self) -> str:
        """What tells the dataset from others whose pages have had the same address."""
        return hashlib.sha256(b"cookie" + self._secret).hexdigest()[:8]

    def cookie(self, role: Role) -> str:
        """The name of the cookie that holds a token.

        Browsers do not tell ports apart: pages of two datasets on one host would replace each other's cookies.
        """
        return f"twinset_{role}_{self.dataset}"

    def csrf(self, person: Person) -> str:
        """What a page of this person sends with each request; neither another site nor another person's page does."""
        return hmac.new(self._secret, f"csrf\0{person.role}\0{person.name}".encode(), hashlib.sha256).hexdigest()

    def check_csrf(self, person: Person, sent: str) -> None:
        """Raise `Refused` (403) where a request does not come from this person's page."""
        if not hmac.compare_digest(self.csrf(person).encode(), sent.encode("utf-8", "replace")):
            raise Refused(403, "This request does not come from the page; reload it.")
