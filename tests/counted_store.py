"""An object store in the memory of this process that counts what would be requests to a real one."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from unittest import mock

from fsspec.implementations.memory import MemoryFileSystem

PAGE = 1000  # names that S3 gives a listing
#: A request each. On S3 a file that is opened is read by one request up to 1 MB (`shards.storage.object_store.opened`).
CALLS = ("cat_file", "put_file", "info", "ls", "rm_file", "open")


@contextmanager
def counted_requests() -> Iterator[Counter[str]]:
    """While entered, calls of ``memory://`` stores by name; a listing of n names counts n / 1,000 of them."""
    counts, within, lock = Counter[str](), threading.local(), threading.Lock()

    def counting(name: str) -> Callable[..., Any]:
        call = getattr(MemoryFileSystem, name)

        @wraps(call)
        def counted(*arguments: Any, **options: Any) -> Any:
            if getattr(within, "call", False):  # the library answers one call by others
                return call(*arguments, **options)
            within.call, requests = True, 1
            try:
                found = call(*arguments, **options)
                requests = max(1, -(-len(found) // PAGE)) if name == "ls" else 1
                return found
            finally:
                within.call = False
                with lock:
                    counts[name] += requests

        return counted

    with mock.patch.multiple(MemoryFileSystem, **{name: counting(name) for name in CALLS}):
        yield counts
