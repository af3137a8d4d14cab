"""A Hub in this process: what `huggingface_hub.HfApi` does for a publication, with requests that fail on demand."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from huggingface_hub.errors import HfHubHTTPError, RevisionNotFoundError

WRITES, READS = "hf_writes", "hf_reads"  # tokens by what they may do
Files = dict[str, bytes]


def answer(status: int, url: str) -> HfHubHTTPError:
    """The error of an HTTP answer."""
    response: Any = SimpleNamespace(status_code=status, headers={}, request=None, url=url)
    return HfHubHTTPError(f"{status} for url '{url}'", response=response)


class Hub:
    """Stands in for `HfApi`. fails, loses: calls by name that a broken connection ends before or after the work."""

    endpoint = "https://hub.example"

    def __init__(self) -> None:
        self.private = True
        self.commits: list[tuple[str, Files]] = []
        self.tags: dict[str, str] = {}
        self.token = WRITES
        self.fails: Callable[[str], bool] = lambda call: False
        self.loses: Callable[[str], bool] = lambda call: False

    def commit(self, files: Files) -> str:
        sha = hashlib.sha1(f"{len(self.commits)} {sorted(files.items())}".encode()).hexdigest()
        self.commits.append((sha, files))
        return sha

    def at(self, revision: str) -> tuple[str, Files]:
        sha = self.commits[-1][0] if revision == "main" else self.tags.get(revision, revision)
        for commit in self.commits:
            if commit[0] == sha:
                return commit
        response: Any = SimpleNamespace(status_code=404, headers={}, request=None)
        raise RevisionNotFoundError("no such revision", response=response)

    def __call__(self, endpoint: str = "") -> "Hub":
        return self

    def __getattr__(self, call: str) -> Callable[..., Any]:
        work = getattr(Hub, f"_{call}")

        def request(repo_id: str, repo_type: str, **options: Any) -> Any:
            assert (repo_id, repo_type) == ("lab/shades", "dataset")
            if self.fails(call):
                raise ConnectionError("the connection was cut")
            result = work(self, **options)
            if self.loses(call):
                raise ConnectionError("the connection was cut")
            return result

        return request

    def _create_repo(self, private: bool, exist_ok: bool) -> None:
        if self.token != WRITES:
            raise answer(403 if self.token == READS else 401, f"{self.endpoint}/api/repos/create")
        if not self.commits:
            self.private = private
            self.commit({".gitattributes": b"*.tar filter=lfs\n"})

    def _repo_info(self, revision: str) -> Any:
        return SimpleNamespace(sha=self.at(revision)[0], private=self.private)

    def _list_repo_files(self, revision: str) -> list[str]:
        return [*self.at(revision)[1]]

    def _hf_hub_download(self, filename: str, revision: str, local_dir: Path) -> str:
        (local_dir / filename).write_bytes(self.at(revision)[1][filename])
        return str(local_dir / filename)

    def _create_commit(self, operations: Sequence[Any], commit_message: str, parent_commit: str) -> Any:
        head, files = self.at("main")
        assert parent_commit == head
        files = dict(files)
        for operation in operations:
            if hasattr(operation, "path_or_fileobj"):
                files[operation.path_in_repo] = Path(operation.path_or_fileobj).read_bytes()
            else:
                del files[operation.path_in_repo]
        return SimpleNamespace(oid=self.commit(files))

    def _create_tag(self, tag: str, revision: str, exist_ok: bool) -> None:
        self.tags.setdefault(tag, revision)

    def _delete_tag(self, tag: str) -> None:
        del self.tags[tag]

    def _update_repo_settings(self, private: bool) -> None:
        self.private = private
