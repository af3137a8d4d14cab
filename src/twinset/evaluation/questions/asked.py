"""What benchmarks ask as files for code that runs elsewhere: each image, each text and each pair of them once.

Q/images/00000.tar …   WebDataset: NUMBER.jpg, .png, .webp …, as the benchmark has them; crops and arrays as PNG
Q/images.parquet       image (the number), file (of the tar), member, sha256
Q/texts.parquet        text (a number), content, sha256
Q/pairs.parquet        image, text, score (empty: to be filled in)
Q/benchmarks.json      names, folders, subsets and digests of the benchmarks
"""

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.errors import WrongUse, in_words
from twinset.evaluation.dataset_parts import open_benchmarks
from twinset.evaluation.examples import Benchmark, OwnQuestion, Picture, Query
from twinset.evaluation.features.pairs import pairs_of
from twinset.evaluation.features.pictures import FORMATS, Unusable
from twinset.evaluation.features.score_table import windows
from twinset.evaluation.features.similarities import of_texts
from twinset.evaluation.features.store import image_name, text_name
from twinset.models.encoders.contract import NotApplicable
from twinset.shards.media.decode import UnreadableImage, open_image
from twinset.shards.storage.spool import temporary_folder
from twinset.shards.storage.tar_reader import TarWriter
from twinset.shards.storage.whole_file import new_folder

IMAGES, TEXTS, PAIRS, ABOUT = "images.parquet", "texts.parquet", "pairs.parquet", "benchmarks.json"
IMAGE_COLUMNS = pa.schema([("image", pa.int32()), *((name, pa.string()) for name in ("file", "member", "sha256"))])
#: question, answer: where the benchmark asks a question itself, and the score is how likely this answer to it is.
TEXT_COLUMNS = pa.schema(
    [("text", pa.int32()), *((name, pa.string()) for name in ("content", "sha256", "question", "answer"))]
)
PAIR_COLUMNS = pa.schema([("image", pa.int32()), ("text", pa.int32()), ("score", pa.float32())])
IMAGES_A_TAR = 10_000
REMEMBERED = 1 << 16  # numbers of pictures by where they lie
_ROWS = 65_536  # written at a time
_TABLES = """
CREATE TABLE images (image INTEGER PRIMARY KEY, name BLOB UNIQUE, file TEXT, member TEXT);
CREATE TABLE texts (text INTEGER PRIMARY KEY, name BLOB UNIQUE, content TEXT, question TEXT, answer TEXT);
CREATE TABLE pairs (image INTEGER, text INTEGER, PRIMARY KEY (image, text)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Benchmarks that are asked: as ``--benchmark NAME=DIR --only SUBSET`` names them, and the digest of each."""

    name: str
    folder: str
    subsets: list[str]
    digests: dict[str, str]

    def opened(self, folder: str | None = None) -> list[Benchmark]:
        """The benchmarks; raises `WrongUse` where they are not as they were. folder: where they lie now."""
        found = open_benchmarks(self.name, folder or self.folder, self.subsets)
        if {one.name: one.digest() for one in found} != self.digests:
            raise WrongUse(
                f"{folder or self.folder}: {self.name} is not as it was when the questions were written; name the "
                f"folder by --benchmark {self.name}=DIR, or write the questions again"
            )
        return found


@dataclass(frozen=True, slots=True)
class Written:
    """How much is asked, and by reason how many examples are not: their images cannot be read."""

    images: int
    texts: int
    pairs: int
    left_out: dict[str, int]


def write_questions(benchmarks: Sequence[tuple[str, str]], subsets: Sequence[str], out: Path) -> Written:
    """Write what some benchmarks ask into a new folder, whole or not at all.

    Args:
        benchmarks: names and folders, as ``--benchmark`` has them.
        subsets: that are read of each; all when empty.

    Raises:
        WrongUse: ``out`` is there already, or a benchmark is wrong.
        NotApplicable: one asks with an image and a text together.
    """
    if out.exists():
        raise WrongUse(f"{out}: is there already; name another folder for the questions")
    places = []
    with ExitStack() as stack:
        folder = stack.enter_context(new_folder(out, "folder"))
        scratch = stack.enter_context(temporary_folder())
        database = stack.enter_context(closing(sqlite3.connect(scratch / "asked.sqlite")))
        database.executescript(_TABLES)
        with _Asked(folder, database) as asked:
            for name, data in benchmarks:
                opened = open_benchmarks(name, data, subsets)
                for benchmark in opened:
                    asked.add(benchmark)
                where = data if "://" in data else str(Path(data).absolute())
                places.append(Place(name, where, list(subsets), {one.name: one.digest() for one in opened}))
        (folder / ABOUT).write_text(json.dumps([asdict(one) for one in places], indent=1) + "\n", "utf-8")
        return asked.write_tables()


class _Asked(ExitStack):
    """Images, texts and pairs that were met, in an SQLite file: galleries ask for millions of pairs."""

    def __init__(self, folder: Path, database: sqlite3.Connection) -> None:
        super().__init__()
        self.folder, self.database = folder, database
        self._numbers = OrderedDict[str, int | Unusable]()  # of pictures by where they lie
        self._tar: TarWriter | None = None
        self._images = self._texts = 0
        self.left_out = dict[str, int]()

    def add(self, benchmark: Benchmark) -> None:
        """Ask for all pairs of a benchmark's examples."""
        for window in windows(benchmark, lambda key, where, reason: self._leave_out(reason), by_pairs=True):
            for example in window:
                if of_texts(example):
                    raise NotApplicable(
                        f"{benchmark.name}: example {example.key} asks how alike two texts are, and questions are "
                        "pairs of an image and a text; score it by twinset eval run --model ENCODER"
                    )
                if isinstance(example, Query) and (example.image is None) == (example.text is None):
                    raise NotApplicable(
                        f"{benchmark.name}: example {example.key} asks with image and text together, and questions "
                        "are pairs of one image and one text; score it by twinset eval run --model image+text:ENCODER"
                    )
                pairs, unusable = list[tuple[int, int]](), None
                for picture, text in pairs_of(example):
                    try:
                        pairs.append((self._image(picture), self._text(text)))
                    except Unusable as error:  # what else the example asks is scored here too, and then not used
                        unusable = error
                if unusable is not None:
                    self._leave_out(unusable.reason)
                self.database.executemany("INSERT OR IGNORE INTO pairs VALUES (?, ?)", pairs)

    def _leave_out(self, reason: str) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def _image(self, picture: Picture) -> int:
        found = self._numbers.get(picture.where)
        if found is None:
            try:
                found = self._read(picture)
            except Unusable as unusable:
                found = unusable
            self._numbers[picture.where] = found
            if len(self._numbers) > REMEMBERED:
                self._numbers.popitem(last=False)
        if isinstance(found, Unusable):
            raise Unusable(found.where, found.reason, found.problem)
        return found

    def _read(self, picture: Picture) -> int:
        try:
            data = picture.read()
        except (OSError, WrongUse) as error:
            raise Unusable(picture.where, "unreadable image", in_words(error)) from error
        name = image_name(data)
        if (known := self._number("images", "image", name)) is not None:
            return known
        try:
            extension = (open_image(data, FORMATS).format or "").lower().replace("mpo", "jpeg").replace("jpeg", "jpg")
        except UnreadableImage as error:
            raise Unusable(picture.where, "undecodable image", str(error)) from error
        number, self._images = self._images, self._images + 1
        file = f"images/{number // IMAGES_A_TAR:05d}.tar"
        if number % IMAGES_A_TAR == 0:
            self.close()  # the tar before
            (self.folder / "images").mkdir(exist_ok=True)
            self._tar = self.enter_context(TarWriter(self.folder / file))
        assert self._tar is not None
        member = f"{number:09d}.{extension}"
        self._tar.add(member, data)
        self.database.execute("INSERT INTO images VALUES (?, ?, ?, ?)", (number, name, file, member))
        return number

    def _text(self, text: str) -> int:
        name = text_name(text)
        if (known := self._number("texts", "text", name)) is not None:
            return known
        number, self._texts = self._texts, self._texts + 1
        content = text.encode("utf-8", "replace").decode()
        own = (text.asked, text.answers[text.right]) if isinstance(text, OwnQuestion) else (None, None)
        self.database.execute("INSERT INTO texts VALUES (?, ?, ?, ?, ?)", (number, name, content, *own))
        return number

    def _number(self, table: str, column: str, name: bytes) -> int | None:
        found = self.database.execute(f"SELECT {column} FROM {table} WHERE name = ?", (name,)).fetchone()
        return None if found is None else int(found[0])

    def write_tables(self) -> Written:
        """Write the three tables, in order of their numbers."""
        self._write(IMAGES, "image, file, member, lower(hex(substr(name, 2))) FROM images ORDER BY 1", IMAGE_COLUMNS)
        self._write(
            TEXTS, "text, content, lower(hex(substr(name, 2))), question, answer FROM texts ORDER BY 1", TEXT_COLUMNS
        )
        pairs = self._write(PAIRS, "image, text, NULL FROM pairs ORDER BY 1, 2", PAIR_COLUMNS)
        return Written(self._images, self._texts, pairs, dict(sorted(self.left_out.items())))

    def _write(self, name: str, query: str, schema: pa.Schema) -> int:
        rows, found = 0, self.database.execute(f"SELECT {query}")
        with pq.ParquetWriter(self.folder / name, schema) as writer:
            while some := found.fetchmany(_ROWS):
                columns = zip(*some, strict=True)
                arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
                rows += len(some)
        return rows
