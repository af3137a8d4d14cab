"""Answers as Parquet, a row each, with the columns of the page's own file: a recipe can name it as ``answers``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.generators.decisions.answers import COLUMNS, Answer, table_of
from twinset.generators.decisions.pictures import Picture
from twinset.manifests.errors import WrongUse
from twinset.manifests.parquet import parquet_columns, parquet_rows
from twinset.review.exchange.form import Form, Row
from twinset.review.tasks import ReviewTask
from twinset.shards.storage.whole_file import whole_file


class Parquet(Form):
    """See the module."""

    name, suffix = "parquet", ".parquet"

    def write(
        self,
        path: Path,
        answered: Sequence[tuple[ReviewTask, Sequence[Answer]]],
        picture: Callable[[ReviewTask, int], Picture],
    ) -> None:
        """As `Form.write`; images are not part of it."""
        with whole_file(path) as beside:
            pq.write_table(table_of(one for _, answers in answered for one in answers), beside, compression="zstd")

    def read(self, path: Path) -> Iterator[Row]:
        """As `Form.read`."""
        try:
            with path.open("rb") as stream:
                if lacking := set(COLUMNS) - set(parquet_columns(stream)):
                    raise WrongUse(f"{path}: no column {min(lacking)!r}; name a file that twinset review exported")
                stream.seek(0)
                for number, row in enumerate(parquet_rows(stream, COLUMNS), 1):
                    yield Row(f"row {number}", row)
        except pa.ArrowException as error:
            raise WrongUse(f"{path}: not Parquet ({error}); name another file, or its form with --form") from error
