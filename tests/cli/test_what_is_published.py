"""S15: what a finished dataset says of the machine that made it. docs/layout.md names what is not to be published."""

import getpass
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

import twinset
from tests.cli.conftest import SAID

CHECKOUT = Path(__file__).resolve().parents[2]
PRIVATE = ("_meta/log", "_review", "_spool")  # as docs/layout.md has it


def contents(path: Path) -> Iterator[bytes]:
    """What can be read in a file: of tables and tars what is within."""
    if path.suffix == ".parquet":
        yield repr(pq.read_table(path).to_pylist()).encode()
        yield repr(pq.read_schema(path).metadata).encode()
    elif path.suffix == ".tar":
        with tarfile.open(path) as tar:
            for member in tar:
                yield f"{member.name} {member.uname} {member.gname}".encode()
                stream = tar.extractfile(member)
                yield stream.read() if stream and member.name.endswith((".json", ".txt")) else b""
    else:
        yield path.read_bytes()


def test_nothing_published_names_a_path_a_person_or_a_host(recipe: Path) -> None:
    """`_meta/recipe.json` was published with the user's absolute paths, which name people, projects and machines."""
    folder = recipe.parent
    (folder / "images/0-0.png").write_bytes(b"no picture")  # a rejection, with its detail
    (folder / "images/1-1.png").unlink()
    out = folder / "out"
    twinset.build(str(recipe), out, settings=["max_missing=0.5", *SAID])
    twinset.look(out)
    twinset.publish(out, folder / "published")
    names = [str(folder), str(Path.home()), str(CHECKOUT), socket.gethostname(), f"/{getpass.getuser()}/"]
    secrets = [name.encode() for name in names if len(name) > 3]
    looked = 0
    for path in (*out.rglob("*"), *(folder / "published").rglob("*")):
        relative = path.relative_to(folder).as_posix()
        if path.is_file() and not any(f"{part}/" in relative for part in PRIVATE):
            looked += 1
            for content in contents(path):
                assert not [name for name in secrets if name in content], relative
    assert not [*(folder / "published").glob("pairs/_meta/log")]
    assert looked > 40
    assert str(folder).encode() in (out / "pairs/_meta/log/recipe.json").read_bytes()  # which the test would have seen
