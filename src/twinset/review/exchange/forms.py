"""The forms by name, the form of a file, and two of them: Parquet, which has the rows as they are, and CSV, a row each,
under the names that crowdsourcing platforms such as Prolific use.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import COLUMNS, table_of, to_row
from twinset.generators.markdown import no_formula
from twinset.review.exchange.label_studio import Address, Answered, Form, LabelStudio, Row, Show
from twinset.shards.plan import parquet_batches, parquet_columns
from twinset.shards.storage.whole_file import whole_file

#: Columns of `Answer` by their name in the file; others keep theirs.
RENAMED = {"participant_id": "annotator", "task_id": "task", "time_taken": "seconds", "completed_at": "at"}
REQUIRED = ("task_id", "answer")
SHOWN = ("subject", "texts")  # of the task, for who reads the file; ignored when it is read back
STATUS = "status"  # of a submission; one that was returned or rejected is not counted
COUNTED = ("", "APPROVED", "AWAITING REVIEW")

_NAMES = {column: name for name, column in RENAMED.items()}


class Prolific(Form):
    """CSV, see the module. Only `REQUIRED` columns must be there; others that are not known are ignored."""

    name, suffix = "prolific", ".csv"

    def write(self, path: Path, answered: Answered, picture: Show, address: Address = None) -> None:
        """As `Form.write`; a task without an answer has a row to fill in. Images have a column each, ``image0`` on, in
        the order of `TaskCandidate.images`, where they have addresses; else they are not part of it.
        """
        most = max((len(task.candidate.images) for task, _ in answered), default=0) if address else 0
        with whole_file(path) as beside, beside.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            heads = [*(_NAMES.get(column, column) for column in COLUMNS), *SHOWN]
            writer.writerow([*heads, *map("image{}".format, range(most))])
            for task, answers in answered:
                shown = [task.candidate.subject, json.dumps(task.candidate.texts, ensure_ascii=False)]
                if address:
                    shown += [address(task, number) for number in range(len(task.candidate.images))]
                if not answers:
                    blank = dict.fromkeys(COLUMNS, "")
                    asked = {"stage": task.stage, "task": task.candidate.key, "binding": task.binding}
                    writer.writerow(map(no_formula, [*(blank | asked).values(), *shown]))
                for one in answers:
                    writer.writerow(map(no_formula, [*to_row(one).values(), *shown]))

    def read(self, path: Path) -> Iterator[Row]:
        """As `Form.read`; submissions that were returned or rejected are left out."""
        try:
            with path.open(encoding="utf-8-sig", newline="") as stream:
                reader = csv.DictReader(stream, strict=True)
                if lacking := [name for name in REQUIRED if name not in (reader.fieldnames or ())]:
                    raise WrongUse(
                        f"{path}: no column {lacking[0]!r}; the first line names columns, {REQUIRED} at least"
                    )
                if len(set(reader.fieldnames or ())) < len(reader.fieldnames or ()):
                    raise WrongUse(f"{path}: two columns have one name; keep the one that is meant")
                for row in reader:
                    if (row.get(STATUS) or "").strip().upper() not in COUNTED:
                        continue
                    named = {RENAMED.get(name, name): value for name, value in row.items() if name is not None}
                    values = {name: value for name, value in named.items() if name in COLUMNS and value}
                    yield Row(f"line {reader.line_num}", values if "answer" in values else {})
        except (csv.Error, UnicodeDecodeError) as error:
            raise WrongUse(f"{path}: not CSV in UTF-8 ({error}); export it again, or name another file") from error


class Parquet(Form):
    """See the module."""

    name, suffix = "parquet", ".parquet"

    def write(self, path: Path, answered: Answered, picture: Show, address: Address = None) -> None:
        """As `Form.write`; images are not part of it."""
        with whole_file(path) as beside:
            pq.write_table(table_of(one for _, answers in answered for one in answers), beside, compression="zstd")

    def read(self, path: Path) -> Iterator[Row]:
        try:
            with path.open("rb") as stream:
                if lacking := set(COLUMNS) - set(parquet_columns(stream)):
                    raise WrongUse(f"{path}: no column {min(lacking)!r}; name a file that twinset review exported")
                stream.seek(0)
                rows = (row for batch in parquet_batches(stream, COLUMNS) for row in batch.to_pylist())
                yield from (Row(f"row {number}", row) for number, row in enumerate(rows, 1))
        except pa.ArrowException as error:
            raise WrongUse(f"{path}: not Parquet ({error}); name another file") from error


FORMS: Mapping[str, Form] = {one.name: one for one in (Parquet(), LabelStudio(), Prolific())}


def form_of(path: Path) -> Form:
    """The form whose files end as this one; raises `WrongUse` where there is none."""
    for form in FORMS.values():
        if path.suffix.lower() == form.suffix:
            return form
    raise WrongUse(
        f"{path}: its form is not known; name a file that ends in {', '.join(f.suffix for f in FORMS.values())}"
    )
