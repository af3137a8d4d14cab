"""Answers as CSV, a row each, under the names that crowdsourcing platforms such as Prolific use."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from twinset.generators.decisions.answers import COLUMNS, Answer, to_row
from twinset.generators.decisions.pictures import Picture
from twinset.manifests.errors import WrongUse
from twinset.review.exchange.form import Form, Row
from twinset.review.tasks import ReviewTask
from twinset.shards.storage.whole_file import whole_file

#: Columns of `Answer` by their name in the file; others keep theirs.
RENAMED = {"participant_id": "annotator", "task_id": "task", "time_taken": "seconds", "completed_at": "at"}
REQUIRED = ("task_id", "answer")
SHOWN = ("subject", "texts")  # of the task, for who reads the file; ignored when it is read back
STATUS = "status"  # of a submission; one that was returned or rejected is not counted
COUNTED = ("", "APPROVED", "AWAITING REVIEW")

_NAMES = {column: name for name, column in RENAMED.items()}


class Prolific(Form):
    """See the module. Only `REQUIRED` columns must be there; others that are not known are ignored."""

    name, suffix = "prolific", ".csv"

    def write(
        self,
        path: Path,
        answered: Sequence[tuple[ReviewTask, Sequence[Answer]]],
        picture: Callable[[ReviewTask, int], Picture],
    ) -> None:
        """As `Form.write`; a task without an answer has a row to fill in. Images are not part of it."""
        with whole_file(path) as beside, beside.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([*(_NAMES.get(column, column) for column in COLUMNS), *SHOWN])
            for task, answers in answered:
                shown = (task.candidate.subject, json.dumps(task.candidate.texts, ensure_ascii=False))
                if not answers:
                    blank = dict.fromkeys(COLUMNS, "")
                    asked = {"stage": task.stage, "task": task.candidate.key, "binding": task.binding}
                    writer.writerow([*(blank | asked).values(), *shown])
                for one in answers:
                    values = to_row(one).values()
                    writer.writerow([*(int(value) if isinstance(value, bool) else value for value in values), *shown])

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
            raise WrongUse(
                f"{path}: not CSV in UTF-8 ({error}); export it again, or name its form with --form"
            ) from error
