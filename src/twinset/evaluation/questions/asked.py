"""What benchmarks ask as files for code that runs elsewhere: each image, each text and each pair of them once.

Q/images/00000.tar     WebDataset: NUMBER.jpg, .png, .webp …, as the benchmark has them; crops and arrays as PNG
Q/images.parquet       image (the number), file (of the tar), member, sha256
Q/texts.parquet        text (a number), content, sha256; of what a benchmark itself asks, its question and the answer
                       whose probability is the score
Q/pairs.parquet        image, text, score (empty: to be filled in)
Q/benchmarks.json      names, folders and subsets of the benchmarks
"""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from twinset.evaluation.benchmarks.built_dataset import open_benchmarks
from twinset.evaluation.examples import Benchmark, OwnQuestion, Picture, Query
from twinset.evaluation.features.pairs import pairs_of
from twinset.evaluation.features.pictures import FORMATS, Pictures, Unusable
from twinset.evaluation.features.score_table import windows
from twinset.evaluation.features.store import text_name
from twinset.models.encoders.contract import NotApplicable
from twinset.shards.media.decode import UnreadableImage, open_image
from twinset.shards.rows import TarWriter
from twinset.shards.storage.whole_file import new_folder

IMAGES, TEXTS, PAIRS, ABOUT = "images.parquet", "texts.parquet", "pairs.parquet", "benchmarks.json"
TAR = "images/00000.tar"


def write_questions(benchmarks: Sequence[tuple[str, str]], subsets: Sequence[str], out: Path) -> dict[str, Any]:
    """Write what some benchmarks ask into a new folder, whole or not at all.

    Args:
        benchmarks: names and folders. subsets: that are read of each; all when empty.

    Returns:
        How many ``images``, ``texts`` and ``pairs`` are asked, and of ``left_out`` by reason how many examples are not.

    Raises:
        WrongUse: ``out`` is there already, or a benchmark is wrong.
        NotApplicable: one asks with an image and a text together, or about two texts.
    """
    with new_folder(out, "folder") as folder, _Questions(folder) as asked:
        for name, data in benchmarks:
            for benchmark in open_benchmarks(name, data, subsets):
                asked.add(benchmark)
        places = [(name, data if "://" in data else str(Path(data).absolute()), subsets) for name, data in benchmarks]
        (folder / ABOUT).write_text(json.dumps(places) + "\n", "utf-8")
        return asked.write_tables()


class _Questions(ExitStack):
    """Images, texts and pairs that were met: 8 bytes a pair."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.left_out, self._pictures = folder, Counter[str](), Pictures()
        (folder / TAR).parent.mkdir()
        self._tar = self.enter_context(TarWriter(folder / TAR))
        self._images: dict[bytes, tuple[int, str, str, str]] = {}  # rows of the tables, by name
        self._texts: dict[bytes, tuple[int, str, str, str | None, str | None]] = {}
        self._pairs = [np.empty(0, np.int64)]

    def add(self, benchmark: Benchmark) -> None:
        """Ask for all pairs of a benchmark's examples."""
        for window in windows(benchmark, lambda key, where, reason: self.left_out.update([reason]), by_pairs=True):
            codes = list[int]()
            for example in window:
                if isinstance(example, Query) and (example.image is None) == (example.text is None):
                    what = f"example {example.key} does not ask about pairs of one image and one text, as questions do"
                    remedy = "score it by twinset eval run --model image+text:ENCODER, or ENCODER for texts"
                    raise NotApplicable(f"{benchmark.name}: {what}; {remedy}")
                reasons = []
                for picture, text in pairs_of(example):
                    try:
                        codes.append(self._image(picture) << 32 | self._text(text))
                    except Unusable as error:  # what else the example asks is scored too, and then not used
                        reasons.append(error.reason)
                self.left_out.update(reasons[-1:])
            self._pairs.append(np.unique(np.array(codes, np.int64)))

    def _image(self, picture: Picture) -> int:
        name = self._pictures.name(picture)
        if name not in self._images:
            data = picture.read()
            try:
                kind = (open_image(data, FORMATS).format or "").lower()
            except UnreadableImage as error:
                raise Unusable(picture.where, "undecodable image", str(error)) from error
            number = len(self._images)
            member = f"{number:09d}.{'jpg' if kind in ('jpeg', 'mpo') else kind}"
            self._tar.add(member, data)
            self._images[name] = number, TAR, member, name[1:].hex()
        return self._images[name][0]

    def _text(self, text: str) -> int:
        own = (text.asked, text.answers[text.right]) if isinstance(text, OwnQuestion) else (None, None)
        name = text_name(text if own[0] is None else f"{own[0]} {own[1]}")
        if name not in self._texts:
            content = text.encode("utf-8", "replace").decode()
            self._texts[name] = len(self._texts), content, name[1:].hex(), *own
        return self._texts[name][0]

    def write_tables(self) -> dict[str, Any]:
        """Write the three tables, in order of their numbers."""
        columns = {"image": pl.Int32, **dict.fromkeys(("file", "member", "sha256"), pl.String)}
        pl.DataFrame([*self._images.values()], columns, orient="row").write_parquet(self.folder / IMAGES)
        columns = {"text": pl.Int32, **dict.fromkeys(("content", "sha256", "question", "answer"), pl.String)}
        pl.DataFrame([*self._texts.values()], columns, orient="row").write_parquet(self.folder / TEXTS)
        code = np.unique(np.concatenate(self._pairs))
        pairs = pl.DataFrame({"image": code >> 32, "text": code & 0xFFFFFFFF}).cast(pl.Int32)
        pairs.with_columns(score=pl.lit(None, pl.Float32)).write_parquet(self.folder / PAIRS)
        counts = {"images": len(self._images), "texts": len(self._texts), "pairs": len(pairs)}
        return {**counts, "left_out": dict(sorted(self.left_out.items()))}
