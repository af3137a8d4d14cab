"""What must not be published of this machine: its paths, its host, its user, wherever a text can name them."""

import getpass
import html
import json
import re
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinset.manifests.markdown import cell, plain
from twinset.manifests.recipe import Recipe
from twinset.shards.storage.member_headers import read_members
from twinset.shards.storage.store import Store

_ROWS = 1 << 14  # of a table that are looked through at a time
_IMAGES = re.compile(r"base64,[A-Za-z0-9+/=]+")  # of a page: its letters are no words
_TEXTS = (".txt", ".json")  # members of tars
_PICTURES = (".png", ".jpg", ".webp")


class Machine:
    """Names of this machine, and where a published file has one of them.

    Paths are the home folder, the dataset's own and all places of its recipes, as they stand and as Markdown, HTML,
    JSON and URLs write them; of other paths those with the user's name in them. A host that could be a word, without
    digit, dot or hyphen, counts behind ``@`` and ``//`` alone.

    held: what a text must hold to name it.
    """

    def __init__(self, store: Store, recipes: Iterable[Recipe]) -> None:
        places = {str(Path.home()), store.root}
        for recipe in recipes:
            placed = [one for stage in recipe.all.values() for one in (stage.source, *stage.filters)]
            found = [(mark.what, str(value)) for one in placed for _, mark, value in one.places()]
            # What can be read on the web may be named: it is where samples come from.
            places |= {value for what, value in found if what == "server" or not value.startswith("http")}
        paths = {one.rstrip("/") for one in places if re.match(r"/[^/]|\w+://.", one)}
        self.held = {form for path in paths for form in _forms(path)}
        self._patterns = [re.compile(rf"(?<![\w.]){re.escape(form)}(?!\w)") for form in sorted(self.held)]
        if len(user := _user()) > 2:
            self.held.add(f"/{user}")
            self._patterns.append(re.compile(rf"(?<![\w.:/])(/[\w.+~-]+)*/{re.escape(user)}(?![\w.-])"))
        for host in {socket.gethostname(), socket.gethostname().partition(".")[0]} - {"", "localhost"}:
            self.held.add(host)
            before = r"(?<![\w.-])" if re.search(r"[\d.-]", host) and len(host) > 3 else r"(?<=[@/])"
            self._patterns.append(re.compile(rf"{before}{re.escape(host)}(?![\w-])"))

    def named_in(self, text: str) -> str:
        """The first name of this machine in a text; empty where there is none."""
        if not any(one in text for one in self.held):
            return ""
        return next((found[0] for one in self._patterns if (found := one.search(text))), "")

    def find(self, file: Path) -> tuple[str, str]:
        """Where a file names this machine, as its sample, column or field, and the name; both empty where nowhere."""
        if file.suffix in _PICTURES:
            return "", ""
        parts = _rows(self, file) if file.suffix == ".parquet" else _texts(file)
        return next(((where, name) for where, text in parts if (name := self.named_in(text))), ("", ""))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""


def _forms(path: str) -> set[str]:
    """A path as it stands in texts, Markdown, HTML, JSON and URLs."""
    return {path, plain(path), cell(path), html.escape(path), json.dumps(path)[1:-1], quote(path)}


def _texts(file: Path) -> Iterator[tuple[str, str]]:
    """Place and content of each text in a file that is no table."""
    if file.suffix != ".tar":
        yield "", _IMAGES.sub("", file.read_text("utf-8", "replace"))
        return
    with file.open("rb") as stream:
        for name, content in read_members(stream, file.name):
            if name.endswith(_TEXTS):
                yield name, content.decode("utf-8", "replace")


def _rows(machine: Machine, file: Path) -> Iterator[tuple[str, str]]:
    """Place and content of the values of a table that may name the machine, and of what its schema says."""
    table = pq.ParquetFile(file, pre_buffer=False)
    yield "schema", f"{table.schema_arrow.names} {table.schema_arrow.metadata}"
    for batch in table.iter_batches(_ROWS, use_threads=False):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            for place, text in _suspects(machine, column):
                key = batch["key"][place].as_py() if "key" in batch.schema.names and place is not None else ""
                yield " ".join(filter(None, ("column", name, f"of {key}" if key else ""))), text


def _suspects(machine: Machine, column: pa.Array) -> Iterator[tuple[int | None, str]]:
    """Texts of a column that hold a name of this machine, with their rows where these can be told."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_map(column.type):
        items = column.flatten() if not pa.types.is_map(column.type) else pa.concat_arrays([column.keys, column.items])
        yield from ((None, text) for _, text in _suspects(machine, items))
    elif pa.types.is_struct(column.type):
        for place in range(column.type.num_fields):
            yield from _suspects(machine, column.field(place))
    elif pa.types.is_dictionary(column.type):
        yield from _suspects(machine, column.cast(column.type.value_type))
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        for name in machine.held:
            for place in pc.indices_nonzero(pc.fill_null(pc.match_substring(column, name), False)).to_pylist():
                yield place, column[place].as_py()
