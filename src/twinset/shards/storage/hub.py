"""A folder as one commit of a dataset on the Hugging Face Hub: resumed by content, whole or not there at all."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage.spool import temporary_folder

SCHEME = "hf://"
SUMS = "SHA256SUMS"
_PLACE = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)/?")
_OWN = ".gitattributes"  # what the Hub puts into a new repository
_REMEDIES = {
    401: "no valid token was sent; run `hf auth login`, or set HF_TOKEN to a token that may write there",
    403: "the token may not write there; make one with write access to it at https://huggingface.co/settings/tokens",
    404: "no such repository, or the token may not see it; check the name and the token",
    412: "somebody else changed it meanwhile, and nothing of this is there; look at it, then --update replaces it",
}


@dataclass(frozen=True, slots=True)
class Repository:
    """A dataset on the Hub. name: ``ORG/NAME``; endpoint: of the Hub, ``HF_ENDPOINT`` or its own."""

    name: str
    endpoint: str

    @property
    def page(self) -> str:
        """Where people see it."""
        return f"{self.endpoint}/datasets/{self.name}"

    def file(self, revision: str, path: str) -> str:
        """The address of a file at a revision."""
        return f"{self.page}/resolve/{revision}/{path}"


def repository(url: str) -> Repository:
    """The dataset that ``hf://datasets/ORG/NAME`` names; `WrongUse` for another URL, or without ``huggingface_hub``."""
    match = _PLACE.fullmatch(url)
    if match is None:
        raise WrongUse(f"--to {url}: not a dataset of the Hub; write hf://datasets/ORG/NAME")
    return Repository(match[1], _library().HfApi().endpoint)


def _library() -> Any:
    try:
        import huggingface_hub.errors
    except ImportError as error:
        raise WrongUse("publishing on the Hub needs huggingface_hub; pip install 'twinset[publish]'") from error
    return huggingface_hub


def upload(repo: Repository, folder: Path, tag: str, message: str, public: bool, update: bool) -> Mapping[str, Any]:
    """Make the repository hold what a folder holds, by one commit; it is created private.

    Args:
        folder: with `SUMS` of all its files.
        tag: given to the commit.
        public: make it public when the commit is there.
        update: replace other files that it holds, and move a tag of another commit.

    Returns:
        ``{"revision", "sent"}``: of the commit, and how many files it has; 0 where they were there.

    Raises:
        WrongUse: the token may not write there, it holds other files, or it is public and ``public`` is not set.
        BuildFailed: the Hub or the connection failed; nothing is half-published, and the same call goes on.
    """
    api, kind = _library().HfApi(endpoint=repo.endpoint), {"repo_id": repo.name, "repo_type": "dataset"}
    ours = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    with _explained(repo):
        api.create_repo(**kind, private=True, exist_ok=True)
        about = api.repo_info(**kind, revision="main")
        head = about.sha
        if not (about.private or public):
            raise WrongUse(
                f"{repo.page} is public: everybody would see this at once; add --public, or name another repository"
            )
        theirs = {*api.list_repo_files(**kind, revision=head)} - {_OWN}
        if {*ours} == theirs and _sums(api, kind, head) == (folder / SUMS).read_bytes():
            revision, sent = head, 0
        elif theirs and not update:
            raise WrongUse(
                f"{repo.page} holds {len(theirs):,} files that differ from these; name another repository, or "
                "replace them in one commit with --update"
            )
        else:
            library = _library()
            operations = [library.CommitOperationAdd(name, str(path)) for name, path in ours.items()]
            operations += [library.CommitOperationDelete(path) for path in sorted(theirs - {*ours})]
            commit = api.create_commit(**kind, operations=operations, commit_message=message, parent_commit=head)
            revision, sent = str(commit.oid), len(ours)
        tagged = _revision_of(api, kind, tag)
        if tagged not in (None, revision):
            if not update:
                raise WrongUse(f"{repo.page}: {tag} names another commit, {tagged}; --update moves it to {revision}")
            api.delete_tag(**kind, tag=tag)
        api.create_tag(**kind, tag=tag, revision=revision, exist_ok=True)
        if public:
            api.update_repo_settings(**kind, private=False)
    return {"revision": revision, "sent": sent}


def _revision_of(api: Any, kind: Mapping[str, str], tag: str) -> str | None:
    """The commit that a tag names; None where there is no such tag."""
    try:
        return str(api.repo_info(**kind, revision=tag).sha)
    except _library().errors.RevisionNotFoundError:
        return None


def _sums(api: Any, kind: Mapping[str, str], revision: str) -> bytes:
    with temporary_folder() as folder:
        return Path(api.hf_hub_download(**kind, filename=SUMS, revision=revision, local_dir=folder)).read_bytes()


@contextmanager
def _explained(repo: Repository) -> Iterator[None]:
    """Errors of the library as sentences with a remedy."""
    library = _library()
    http = library.errors.HTTPError
    try:
        yield
    except (http, RuntimeError, ValueError, OSError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None and not isinstance(cause, http):
            cause = cause.__cause__  # of a file that several threads send
        status = getattr(getattr(cause, "response", None), "status_code", 0)
        if isinstance(error, library.errors.LocalTokenNotFoundError):
            status = 401
        # An address that a file is sent to can hold a signature, which lets anyone who has it write there.
        reason = re.sub(r"(https?://[^\s?]+)\?[^\s'\">)]*", r"\1", " ".join(str(cause).split()))[:300]
        asked = str(getattr(getattr(cause, "response", None), "url", repo.endpoint))
        if status in (401, 403, 404) and asked.startswith(repo.endpoint):  # not from a store of files
            raise WrongUse(f"{repo.page}: {_REMEDIES[status]} ({reason})") from error
        if isinstance(cause, ValueError):
            raise WrongUse(f"{repo.page}: {reason}; nothing is published") from error
        remedy = _REMEDIES.get(status, "run the same command again: files that are there are not sent again")
        raise BuildFailed(f"{repo.page}: {reason}; nothing is half-published; {remedy}") from error
