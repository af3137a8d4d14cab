"""The forms by name, the form of a file, and Parquet, which has the rows as they are."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.generators.decisions.answers import COLUMNS, Answer, table_of
from twinset.generators.decisions.pictures import Picture
from twinset.manifests.errors import WrongUse
from twinset.manifests.parquet import parquet_columns, parquet_rows
from twinset.review.exchange.form import Form, Row
from twinset.review.exchange.label_studio import LabelStudio
from twinset.review.exchange.prolific import Prolific
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
        try:
            with path.open("rb") as stream:
                if lacking := set(COLUMNS) - set(parquet_columns(stream)):
                    raise WrongUse(f"{path}: no column {min(lacking)!r}; name a file that twinset review exported")
                stream.seek(0)
                for number, row in enumerate(parquet_rows(stream, COLUMNS), 1):
                    yield Row(f"row {number}", row)
        except pa.ArrowException as error:
            raise WrongUse(f"{path}: not Parquet ({error}); name another file, or its form with --form") from error


FORMS: Mapping[str, Form] = {one.name: one for one in (Parquet(), LabelStudio(), Prolific())}


def form_of(path: Path, name: str | None) -> Form:
    """The form that is named, or else the one whose files end as this one; raises `WrongUse` without either."""
    if name is not None:
        return FORMS[name]
    for form in FORMS.values():
        if path.suffix.lower() == form.suffix:
            return form
    raise WrongUse(f"{path}: its form is not known by its name; name it with --form ({', '.join(FORMS)})")
