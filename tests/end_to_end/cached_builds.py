"""Builds that tests share: made once, and kept in pytest's cache until the code that makes them changes."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
ROOMS = ("cards", "cli", "filters", "generators", "manifests", "shards", "stages")
FILES = (".py", ".yaml", ".j2")


@cache
def digest_of(*rooms: str) -> str:
    """Digest of the code of some rooms, of the locked libraries, and of the tests that say what is built."""
    found = [path for room in rooms for path in (CHECKOUT / room).rglob("*") if path.suffix in FILES]
    found += [*Path(__file__).parent.glob("*.py"), CHECKOUT / "twinset.py", CHECKOUT / "requirements.lock"]
    digest = sha256()
    for path in sorted(found):
        digest.update(f"{path.relative_to(CHECKOUT)}\0".encode() + sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def cached(config: pytest.Config, name: str, make: Callable[[Path], None], rooms: tuple[str, ...] = ROOMS) -> Path:
    """A folder that ``make`` fills, unless this code filled it before; those of other code are removed."""
    place = config.cache.mkdir("built") / f"{name}-{digest_of(*rooms)}"  # type: ignore[union-attr]
    if not place.exists():
        for old in place.parent.glob(f"{name}-{'?' * 16}"):
            shutil.rmtree(old, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(dir=place.parent))
        try:
            make(scratch)
            with contextlib.suppress(OSError):  # another process of pytest's was faster
                scratch.rename(place)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return place
