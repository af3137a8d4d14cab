"""Object stores by fsspec URL: how requests are repeated, and what their errors mean."""

import contextlib
import errno
import io
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import fsspec

from twinset.contracts.errors import WrongUse

CLIENTS = ("botocore", "aiobotocore", "aiohttp")  # packages whose errors s3fs lets through as they are
SMALL = 1 << 20  # bytes of an object that is read whole when it is opened
PART = 4 << 20  # bytes of a larger one that are read by a request
HASTE = 1.0  # seconds of silence after which a request is lost, for the client that makes requests in haste
IN_VAIN = 3  # requests of the hasty client in a row, after which the store is taken to be slow
HASTY_ATTEMPTS = 3
LARGE = 16 << 20  # bytes that are sent with patience: a store may take its time to keep them
ATTEMPTS = 10  # at one S3 request; with waits of up to 20 s between them, a store may be away for a minute

#: Schemes of the URLs that are opened. fsspec knows more: some log in to other hosts, some read local files.
SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "https", "http", "file")


class Requests:
    """The file system of an object store, as fsspec has it.

    A store that does not answer has mostly lost a request, which is worth asking again at once; but a store that is
    slow has to be waited for. So small requests are made by a hasty client first, and what that does not get, and what
    is large, by a patient one.
    """

    def __init__(self, patient: Any, hasty: Any = None) -> None:
        self.patient, self._hasty, self._in_vain = patient, hasty, 0

    def __getattr__(self, name: str) -> Any:
        """A function, or a fact, of the file system."""
        hasty, patient = getattr(self._hasty, name, None), getattr(self.patient, name)
        return partial(self._asked_twice, hasty, patient) if callable(hasty) else patient

    def _asked_twice(self, hasty: Callable[..., Any], patient: Callable[..., Any], *given: Any, **options: Any) -> Any:
        if self._in_vain < IN_VAIN:
            try:
                found = hasty(*given, **options)
                self._in_vain = 0
                return found
            except (FileNotFoundError, FileExistsError, PermissionError, NotADirectoryError, NotImplementedError):
                raise  # an answer
            except Exception as error:
                if not isinstance(error, OSError) and not of_client(error):
                    raise
                self._in_vain += 1
        return patient(*given, **options)


def connect(root: str) -> tuple[Requests, str]:
    """The file system of a URL, and the root's path in it.

    Raises `WrongUse` when this kind of URL is not opened or cannot be written, or names no bucket.
    """
    scheme = urlsplit(checked_url(root)).scheme
    options: dict[str, Any] = {"use_listings_cache": False}  # other workers write here too
    hasty = None
    try:
        if scheme in ("s3", "s3a"):
            options["config_kwargs"] = given = _s3_options()
            if given["retries"].get("total_max_attempts") == ATTEMPTS:  # else as the user chose
                quick = {"retries": {**given["retries"], "total_max_attempts": HASTY_ATTEMPTS}, "read_timeout": HASTE}
                hasty, _ = cast(Any, fsspec.core.url_to_fs(root, **{**options, "config_kwargs": {**given, **quick}}))
                hasty.retries = 2  # s3fs's own, of these attempts together and of answers that are cut short
        files, base = cast(Any, fsspec.core.url_to_fs(root, **options))
        if hasty is not None:
            files.retries = 2  # of ten times 15 s: five minutes
    except (ImportError, ValueError) as error:
        raise WrongUse(f"{root}: this kind of URL cannot be written ({error}); use a folder or s3://…") from error
    if not urlsplit(root).netloc and scheme != "memory":
        raise WrongUse(f"{root!r} names no bucket; write it as in {scheme}://bucket/prefix")
    return Requests(files, hasty), base.rstrip("/")


def _s3_options() -> dict[str, Any]:
    """Adaptive retries of botocore, unless the user chose others: by variables of AWS, or in fsspec's configuration.

    botocore repeats requests that fail, s3fs those whose answer is cut short (`s3fs.S3FileSystem.retries`).
    """
    retries: dict[str, Any] = {}
    if "AWS_RETRY_MODE" not in os.environ:
        retries["mode"] = "adaptive"
    if "AWS_MAX_ATTEMPTS" not in os.environ:
        retries["total_max_attempts"] = ATTEMPTS
    return {"retries": retries, **fsspec.config.conf.get("s3", {}).get("config_kwargs", {})}


def read(files: Any, path: str) -> bytes:
    """A whole object, by one request."""
    # s3fs would ask for the size first, to read a large object in parts that arrive together.
    options = {"max_concurrency": 1} if "s3" in files.protocol else {}
    return bytes(files.cat_file(path, **options))


def read_part(files: Any, path: str, start: int, size: int) -> bytes:
    """``size`` bytes of an object from byte ``start`` on, by one request."""
    return bytes(files.cat_file(path, start=start, end=start + size)) if size else b""


class _Parts(io.RawIOBase):
    """An object as a stream, of which each part is a request like any other: in haste first, then with patience."""

    def __init__(self, files: Any, path: str, url: str) -> None:
        self._files, self._path, self._url, self._at = files, path, url, 0
        self._size = int(files.info(path)["size"])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        self._at = place + (0, self._at, self._size)[whence]
        return self._at

    def readall(self) -> bytes:
        return b"".join(iter(partial(self.read, PART), b""))

    def readinto(self, room: Any) -> int:
        with explaining(self._url):
            part = read_part(self._files, self._path, self._at, max(0, min(len(room), self._size - self._at)))
        room[: len(part)] = part
        self._at += len(part)
        return len(part)


def opened(files: Any, path: str, url: str) -> BinaryIO:
    """An object as a seekable stream; one request where it is small, as rows and plans of shards are."""
    with contextlib.suppress(OSError, ValueError):  # an object of no bytes has no range; others say why below
        if len(start := bytes(files.cat_file(path, start=0, end=SMALL))) < SMALL:
            return io.BytesIO(start)
    return io.BufferedReader(_Parts(files, path, url), PART)


def stamp(entry: dict[str, Any]) -> str:
    """What changes when an object is replaced: its ETag, else when it was written (names differ between stores)."""
    names = ("ETag", "etag", "LastModified", "last_modified", "updated", "mtime", "created")
    return next((str(entry[name]) for name in names if entry.get(name)), "")


@contextlib.contextmanager
def explaining(url: str) -> Iterator[None]:
    """Turn the errors of an object store's client into OSErrors that name the object and what to do."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, f"{_said(error)}; does the bucket exist?", url) from error
    except FileExistsError:  # of what is written only where nothing is
        raise
    except PermissionError as error:
        remedy = "the credentials do not allow this (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE)"
        raise PermissionError(errno.EACCES, f"{_said(error)}; {remedy}", url) from error
    except NotImplementedError as error:
        raise WrongUse(f"{url}: this kind of URL cannot be written; use a folder or s3://…") from error
    except Exception as error:
        if not isinstance(error, OSError) and not of_client(error):
            raise
        remedy = "is the store reachable (AWS_ENDPOINT_URL, credentials)? Run the same command again to resume"
        code = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
        if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
            code = errno.ETIMEDOUT  # after minutes: not worth another try
        raise OSError(code, f"{_said(error)}; {remedy}", url) from error


def _said(error: Exception) -> str:
    """An error's words without its number, which the error made of it says again."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def of_client(error: Exception) -> bool:
    """Whether an error is of the client's own kind, not an OSError."""
    return type(error).__module__.partition(".")[0] in CLIENTS


def checked_url(url: str) -> str:
    """A URL that a recipe, a command or data names; raises `WrongUse` for one of another scheme, or a chain of them.

    Everything that hands a URL to fsspec asks this first.
    """
    if "::" in url or url.partition("://")[0] not in SCHEMES:
        allowed = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        hub = "; for a finished dataset: twinset publish OUT --to hf://datasets/ORG/NAME" * url.startswith("hf://")
        message = f"{url[:300]}: not a URL that is opened; name a folder, or one URL that begins with {allowed}{hub}"
        raise WrongUse(message)
    return url
