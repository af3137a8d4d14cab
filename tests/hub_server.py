"""As much of the Hugging Face Hub as huggingface_hub, datasets, mlcroissant and webdataset ask for, on 127.0.0.1."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

WRITES, READS = "hf_writes", "hf_reads"  # tokens by what they may do
LARGE = re.compile(r"\.(tar|parquet|png|jpg)$")  # what goes to LFS, as the .gitattributes of a new dataset say
OTHER = re.compile(r"/api/(agent-harnesses|telemetry).*")


@dataclass
class Dataset:
    """A repository. commits: sha and content of the files of each; tags: sha by name."""

    private: bool = True
    commits: list[tuple[str, dict[str, bytes]]] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)

    def commit(self, files: dict[str, bytes]) -> str:
        sums = [f"{path} {hashlib.sha1(content).hexdigest()}" for path, content in sorted(files.items())]
        sha = hashlib.sha1("\n".join([str(len(self.commits)), *sums]).encode()).hexdigest()
        self.commits.append((sha, files))
        return sha

    def at(self, revision: str) -> tuple[str, dict[str, bytes]]:
        sha = self.commits[-1][0] if revision == "main" else self.tags.get(revision, revision)
        return next(one for one in self.commits if one[0] == sha)


class Hub(ThreadingHTTPServer):
    """A Hub. datasets: by ``ORG/NAME``. objects: files that were sent, by sha256, whether committed or not.

    requests: method and path of all. unknown: those that it has no answer for. fails: which are cut off before they are
    read whole; loses: which are cut off after they were done. before: is called before each is answered.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.datasets: dict[str, Dataset] = {}
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.unknown: list[str] = []
        self.fails: Callable[[str, str], bool] = lambda method, path: False
        self.loses: Callable[[str, str], bool] = lambda method, path: False
        self.before: Callable[[str, str], None] = lambda method, path: None
        self.lock = threading.RLock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def sent(self) -> list[str]:
        """sha256 of the files that were sent, once each time."""
        return [path.rpartition("/")[2] for method, path in self.requests if method == "PUT" and "/objects/" in path]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def _handle(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.before(self.command, path)
        if self.server.fails(self.command, path):
            self.rfile.read(int(self.headers.get("Content-Length", 0)) // 2)
            self.server.requests.append(("CUT", path))
            self.close_connection = True
            return
        body = self._body()
        with self.server.lock:
            self.server.requests.append((self.command, path))
            for pattern, method, answer in _ROUTES:
                if self.command in method.split() and (found := re.fullmatch(pattern, path)):
                    return answer(self, body, *found.groups())
        if not OTHER.fullmatch(path):
            self.server.unknown.append(f"{self.command} {path}")
        self._say(404, {"error": "no such page"})

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _say(self, status: int, what: Any, **headers: str) -> None:
        if self.server.loses(self.command, unquote(urlsplit(self.path).path)):
            self.close_connection = True
            return
        content = what if isinstance(what, bytes) else json.dumps(what).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _repo(self, name: str, writes: bool = False) -> Dataset | None:
        """A repository that the request's token may see, or write to; None after the answer that says no."""
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        repo = self.server.datasets.get(name)
        if (writes or (repo and repo.private)) and token not in (WRITES, READS):
            self._say(401, {"error": "Invalid username or password."}, X_Error_Code="RepoNotFound")
        elif writes and token == READS:
            self._say(403, {"error": "Forbidden: you must use a write token"})
        elif repo is None:
            self._say(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
        else:
            return repo
        return None

    def _create(self, body: bytes) -> None:
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}"
        known = name in self.server.datasets
        new = Dataset(asked["visibility"] == "private")
        new.commit({".gitattributes": b"*.tar filter=lfs\n"})
        self.server.datasets.setdefault(name, new)
        if self._repo(name, writes=True) is None:
            if not known:
                del self.server.datasets[name]
            return
        url = f"{self.server.url}/datasets/{name}"
        self._say(409 if known else 200, {"url": url, "error": "You already created this dataset repo"})

    def _info(self, _body: bytes, name: str, _: str | None, revision: str | None) -> None:
        if repo := self._repo(name):
            try:
                sha, files = repo.at(revision or "main")
            except StopIteration:
                return self._say(404, {"error": "no such revision"}, X_Error_Code="RevisionNotFound")
            about = {"id": name, "sha": sha, "private": repo.private, "tags": [], "downloads": 0, "likes": 0}
            self._say(200, {**about, "siblings": [{"rfilename": path} for path in files]})

    def _entries(self, files: dict[str, bytes], paths: set[str]) -> list[dict[str, Any]]:
        found = []
        for path in sorted(paths):
            if path not in files:
                oid = hashlib.sha1(path.encode()).hexdigest()
                found.append({"type": "directory", "path": path, "oid": oid, "size": 0})
                continue
            content = files[path]
            one = {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
            if LARGE.search(path):
                sha256 = hashlib.sha256(content).hexdigest()
                one["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 130}
            found.append(one)
        return found

    def _tree(self, _body: bytes, name: str, revision: str, folder: str | None) -> None:
        if repo := self._repo(name):
            _, files = repo.at(revision)
            start = f"{folder}/" if folder else ""
            below = {path.removeprefix(start) for path in files if path.startswith(start)}
            folders = {path.rsplit("/", n)[0] for path in below for n in range(1, path.count("/") + 1)}
            every = below | folders
            if "recursive=true" not in self.path.lower():
                every = {path for path in every if "/" not in path}
            if folder and not every:
                return self._say(404, {"error": "no entry"}, X_Error_Code="EntryNotFound")
            self._say(200, self._entries(files, {start + path for path in every}))

    def _preupload(self, body: bytes, name: str, _revision: str) -> None:
        if repo := self._repo(name, writes=True):
            _, files = repo.at("main")
            said = []
            for one in json.loads(body)["files"]:
                large = bool(LARGE.search(one["path"]))
                oid = None
                if (content := files.get(one["path"])) is not None:
                    git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
                    oid = hashlib.sha256(content).hexdigest() if large else git
                mode = "lfs" if large else "regular"
                said.append({"path": one["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
            self._say(200, {"files": said})

    def _batch(self, body: bytes, name: str) -> None:
        if self._repo(name, writes=True):
            said = []
            for one in json.loads(body)["objects"]:
                if one["oid"] not in self.server.objects:
                    one["actions"] = {
                        "upload": {"href": f"{self.server.url}/objects/{one['oid']}"},
                        "verify": {"href": f"{self.server.url}/verify"},
                    }
                said.append(one)
            self._say(200, {"transfer": "basic", "objects": said})

    def _put(self, body: bytes, oid: str) -> None:
        right = hashlib.sha256(body).hexdigest() == oid
        if right:
            self.server.objects[oid] = body
        self._say(200 if right else 400, {})

    def _verify(self, body: bytes) -> None:
        asked = json.loads(body)
        self._say(200 if len(self.server.objects.get(asked["oid"], b"")) == asked["size"] else 404, {})

    def _commit(self, body: bytes, name: str, _revision: str) -> None:
        if repo := self._repo(name, writes=True):
            head, files = repo.at("main")
            files = dict(files)
            for line in map(json.loads, body.splitlines()):
                value = line["value"]
                if line["key"] == "header" and value.get("parentCommit", head) != head:
                    error = "A commit has happened since. Please refresh and try again."
                    return self._say(412, {"error": error})
                if line["key"] == "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                elif line["key"] == "lfsFile":
                    files[value["path"]] = self.server.objects[value["oid"]]
                elif line["key"] == "deletedFile":
                    del files[value["path"]]
            sha = repo.commit(files)
            self._say(200, {"commitOid": sha, "commitUrl": f"{self.server.url}/datasets/{name}/commit/{sha}"})

    def _tag(self, body: bytes, name: str, revision: str) -> None:
        if repo := self._repo(name, writes=True):
            if self.command == "DELETE":
                del repo.tags[revision]
                return self._say(200, {})
            tag = json.loads(body)["tag"]
            known = tag in repo.tags
            repo.tags.setdefault(tag, repo.at(revision)[0])
            self._say(409 if known else 200, {"error": "Tag already exists"})

    def _settings(self, body: bytes, name: str) -> None:
        if repo := self._repo(name, writes=True):
            repo.private = json.loads(body)["visibility"] == "private"
            self._say(200, {"private": repo.private})

    def _resolve(self, _body: bytes, name: str, revision: str, path: str) -> None:
        if repo := self._repo(name):
            try:
                sha, files = repo.at(revision)
            except StopIteration:
                return self._say(404, {"error": "no such revision"}, X_Error_Code="RevisionNotFound")
            if path not in files:
                return self._say(404, {"error": "no such file"}, X_Error_Code="EntryNotFound", X_Repo_Commit=sha)
            content, status = files[path], 200
            headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": sha}
            if part := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
                first, last = int(part[1]), min(int(part[2] or len(content)), len(content) - 1)
                headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
                content, status = content[first : last + 1], 206
            self._say(status, content, Accept_Ranges="bytes", **headers)


_REPO = r"([^/]+/[^/]+)"
_ROUTES: list[tuple[str, str, Callable[..., None]]] = [
    ("/api/repos/create", "POST", _Handler._create),
    ("/api/validate-yaml", "POST", lambda handler, body: handler._say(200, {"errors": [], "warnings": []})),
    (rf"/api/datasets/{_REPO}(/revision/([^/]+))?", "GET HEAD", _Handler._info),
    (rf"/api/datasets/{_REPO}/tree/([^/]+)(?:/(.*))?", "GET HEAD", _Handler._tree),
    (rf"/api/datasets/{_REPO}/preupload/([^/]+)", "POST", _Handler._preupload),
    (rf"/datasets/{_REPO}\.git/info/lfs/objects/batch", "POST", _Handler._batch),
    (r"/objects/([0-9a-f]{64})", "PUT", _Handler._put),
    ("/verify", "POST", _Handler._verify),
    (rf"/api/datasets/{_REPO}/commit/([^/]+)", "POST", _Handler._commit),
    (rf"/api/datasets/{_REPO}/tag/([^/]+)", "POST DELETE", _Handler._tag),
    (rf"/api/datasets/{_REPO}/settings", "PUT", _Handler._settings),
    (rf"/datasets/{_REPO}/resolve/([^/]+)/(.+)", "GET HEAD", _Handler._resolve),
]
