"""Tasks and answers for tests."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from twinset.generators.decisions.answers import INSERT, Answer, create_tables, to_row
from twinset.generators.decisions.question import TaskCandidate


def task(question: str = "best-image", number: int = 0, **fields: Any) -> TaskCandidate:
    """A task of a question with as many images as it is shown with by default: four, or two."""
    images = {"best-image": 4, "match": 2}.get(question, 2)
    texts = 2 if question == "keep-pair" else 1
    given = {
        "key": f"people-{number}",
        "group": f"people-{number}",
        "question": question,
        "texts": tuple(f"text {n}" for n in range(texts)),
        "images": tuple(f"image-{n}" for n in range(images)),
        "image_tars": ("test/00000.tar",) * images,
        "image_sha256s": tuple(f"{n:064x}" for n in range(images)),
        "subject": f"negative-{number}",
    }
    return TaskCandidate(**{**given, **fields})


def answer(to: TaskCandidate, annotator: str, value: str, **fields: Any) -> Answer:
    """What an annotator says to a task."""
    given = {"stage": "people", "task": to.key, "binding": to.binding, "annotator": annotator, "answer": value}
    return Answer(**{**given, **fields})


def insert(connection: sqlite3.Connection, answers: Iterable[Answer]) -> None:
    """Commit answers to a file; one whose primary key is there is left out."""
    with connection:
        connection.executemany(INSERT, ([*to_row(answer).values()] for answer in answers))


def say(place: Path, answers: Iterable[Answer]) -> None:
    """Commit answers to a file, which is made where it is absent."""
    place.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(place)) as connection:
        create_tables(connection)
        insert(connection, answers)
