"""Builds that tests share: made once, and kept in pytest's cache until the code behind them changes."""

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
#: What a build depends on: the rooms that make it, and the recipes, which lie beside the fixtures that use them.
BUILT_BY = (
    *(
        "demo",
        "filters",
        "generators",
        "manifests",
        *(f"src/twinset/{room}" for room in ("__init__.py", "cards", "cli", "contracts", "models", "shards", "stages")),
    ),
    "tests/end_to_end/conftest.py",
)
FILES = (".py", ".yaml", ".j2")


@cache
def digest_of(*places: str) -> str:
    """Digest of the code in some folders and files, and of the locked libraries."""
    roots = [CHECKOUT / place for place in (*places, "tests/cached_builds.py")]
    found = [path for root in roots for path in (root, *root.rglob("*")) if path.is_file() and path.suffix in FILES]
    found.append(CHECKOUT / "requirements.lock")
    digest = sha256()
    for path in sorted(found):
        digest.update(f"{path.relative_to(CHECKOUT)}\0".encode() + sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def alone(place: Path) -> Iterator[None]:
    """Hold a lock of all of pytest's processes: what one of them makes, the others wait for, not make it too."""
    with place.with_name(f".{place.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed, also by a kill
        yield


def cached(config: pytest.Config, name: str, make: Callable[[Path], None], code: tuple[str, ...] = BUILT_BY) -> Path:
    """A folder that ``make`` fills, unless this code filled it before; those of other code are removed."""
    place = config.cache.mkdir("built") / f"{name}-{digest_of(*code)}"  # type: ignore[union-attr]
    with alone(place.with_name(name)):
        if not place.exists():
            for old in place.parent.glob(f"{name}-{'?' * 16}"):
                shutil.rmtree(old, ignore_errors=True)
            scratch = Path(tempfile.mkdtemp(dir=place.parent))
            try:
                make(scratch)
                scratch.rename(place)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return place
