"""Object stores by fsspec URL: how requests are repeated, and what their errors mean."""

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import fsspec
from fsspec.spec import AbstractBufferedFile

from twinset.contracts.errors import WrongUse

CLIENTS = ("botocore", "aiobotocore", "aiohttp")  # packages whose errors s3fs lets through as they are
SMALL = 1 << 20  # bytes of an object that is read whole when it is opened
PART = 4 << 20  # bytes of a larger one that are read by a request
CUT_SHORT = 8  # times that an S3 answer may be before it is an error: of five, one in 3,000 is where a fifth fails
ATTEMPTS = 10  # at one S3 request; with waits of up to 20 s between them, a store may be away for a minute

#: Schemes of the URLs that are opened. fsspec knows more: some log in to other hosts, some read local files.
SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "https", "http", "file")


def connect(root: str) -> tuple[Any, str]:
    """The file system of a URL, and the root's path in it.

    Raises `WrongUse` when this kind of URL is not opened or cannot be written, or names no bucket.
    """
    scheme = urlsplit(checked_url(root)).scheme
    options: dict[str, Any] = {"use_listings_cache": False}  # other workers write here too
    if scheme in ("s3", "s3a"):
        options["config_kwargs"] = _s3_options()
    try:
        files, base = cast(Any, fsspec.core.url_to_fs(root, **options))
    except (ImportError, ValueError) as error:
        raise WrongUse(f"{root}: this kind of URL cannot be written ({error}); use a folder or s3://…") from error
    if not urlsplit(root).netloc and scheme != "memory":
        raise WrongUse(f"{root!r} names no bucket; write it as in {scheme}://bucket/prefix")
    files.retries = CUT_SHORT  # of s3fs
    return files, base.rstrip("/")


def _s3_options() -> dict[str, Any]:
    """Adaptive retries of botocore, unless the user chose others: by variables of AWS, or in fsspec's configuration."""
    retries: dict[str, Any] = {}
    if "AWS_RETRY_MODE" not in os.environ:
        retries["mode"] = "adaptive"
    if "AWS_MAX_ATTEMPTS" not in os.environ:
        retries["total_max_attempts"] = ATTEMPTS
    return {"retries": retries, **fsspec.config.conf.get("s3", {}).get("config_kwargs", {})}


class _Object(AbstractBufferedFile):  # type: ignore[misc]  # fsspec has no types
    """A large object as a seekable stream, read ahead by some MB. url: of the object, for messages."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        with explaining(self.kwargs["url"]):
            return bytes(self.fs.cat_file(self.path, start=start, end=end))


def opened(files: Any, path: str, url: str) -> BinaryIO:
    """An object as a seekable stream; one request where it is small, as rows and plans of shards are."""
    try:
        if len(start := bytes(files.cat_file(path, start=0, end=SMALL))) < SMALL:
            return io.BytesIO(start)
    except FileNotFoundError:
        raise
    except (OSError, ValueError):
        pass  # an object of no bytes has no range; others say why below
    return cast(BinaryIO, _Object(files, path, block_size=PART, url=url))


def stamp(entry: dict[str, Any]) -> str:
    """What changes when an object is replaced: its ETag, else when it was written (names differ between stores)."""
    names = ("ETag", "etag", "LastModified", "last_modified", "updated", "mtime", "created")
    return next((str(entry[name]) for name in names if entry.get(name)), "")


@contextlib.contextmanager
def explaining(url: str) -> Iterator[None]:
    """Turn the errors of an object store's client into OSErrors that name the object and what to do."""
    try:
        yield
    except NotImplementedError as error:
        raise WrongUse(f"{url}: this kind of URL cannot be written; use a folder or s3://…") from error
    except Exception as error:
        of_store = isinstance(error, OSError) or type(error).__module__.partition(".")[0] in CLIENTS
        if not of_store or isinstance(error, FileExistsError):  # of what is written only where nothing is
            raise
        if isinstance(error, FileNotFoundError) and isinstance(error.__cause__, OSError):
            error = error.__cause__  # fsspec says of a server that cannot be reached that it has no such file
        message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        code = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
        remedy = "is the store reachable (AWS_ENDPOINT_URL, credentials)? Run the same command again to resume"
        if isinstance(error, FileNotFoundError):
            code, remedy = errno.ENOENT, "does the bucket exist?"
        elif isinstance(error, PermissionError):
            code = errno.EACCES
            remedy = "the credentials do not allow this (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE)"
        elif isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
            code = errno.ETIMEDOUT  # after minutes: not worth another try
        raise OSError(code, f"{message}; {remedy}", url) from error


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
