"""Rows whose values have places and no names."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from twinset import WrongUse
from twinset.evaluation.benchmarks.reader import Pairs
from twinset.evaluation.benchmarks.rows import REFETCH, Row, read_values


class Listed(Pairs):
    """Pairs whose rows may be lists, or of a table whose own header is not relied on: ``header`` names their values."""

    header: ClassVar[Sequence[str]] = ()

    def rows(self, subset: str) -> Iterator[Row]:
        """As `Reader.rows`. Raises `WrongUse` for a row of too few values."""
        path, *_ = self.paths(subset)
        table = ".csv" in path.suffixes
        if not self.header or path.suffix == ".parquet":
            yield from super().rows(subset)
            return
        for where, number, value in read_values(path):
            if table or isinstance(value, list):
                values = list(value.values() if table else value)
                if len(values) < len(self.header):
                    raise WrongUse(f"{where}: {len(values)} values, not {', '.join(self.header)}; {REFETCH}")
                value = dict(zip(self.header, values, strict=False))
            elif not isinstance(value, dict):
                raise WrongUse(f"{where}: neither a list nor an object; {REFETCH}")
            yield Row(subset, where, number, value)
