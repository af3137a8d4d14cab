"""Pairs that people screen, and annotators who answer on the page."""

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.made_recipe import write_recipe

ANSWERS = "_review/answers.sqlite"


def write_screened(folder: Path, pairs: int) -> Path:
    """A recipe of pairs in four shards that people screen, with all that it reads."""
    return write_recipe(folder, pairs, pairs // 4, screening=True)


def copy_answers(out: Path, to: Path) -> None:
    (to / ANSWERS).parent.mkdir(parents=True)
    with closing(sqlite3.connect(out / ANSWERS)) as answers, closing(sqlite3.connect(to / ANSWERS)) as copy:
        answers.backup(copy)


def link_of(annotator: str, log: Path) -> str:
    """The annotator's link that the page printed; empty until then."""
    printed = log.read_text() if log.exists() else ""
    link = re.search(rf"^{annotator}: (http\S+)$", printed, re.MULTILINE)
    return link[1] if link else ""


def number_of(task: dict[str, Any]) -> str:
    return str(task["texts"][0].split()[1])


@contextmanager
def entered(link: str) -> Iterator[tuple[httpx.Client, str, dict[str, str]]]:
    """The page that a link opens: a client, the page's address and the headers that answers need."""
    with httpx.Client(follow_redirects=True, timeout=300) as client:
        base = str(client.get(link).url.copy_with(query=None)).rstrip("/")
        csrf = re.search(r'name="csrf" content="([^"]+)"', client.get(f"{base}/").text)  # the link has set a cookie
        assert csrf is not None
        client.headers["x-csrf-token"] = csrf[1]
        yield client, base, {"x-csrf-token": csrf[1]}


def next_tasks(client: httpx.Client, base: str) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = client.get(f"{base}/api/next", params={"after": 6}).json()
    return tasks


def answer_all(link: str, saved: set[str], sent: set[str], leased: set[str]) -> None:
    """Answer until nothing is left or the page is gone; every seventh pair is dropped.

    saved, sent: numbers of pairs whose answer was acknowledged, or sent; leased: that were shown.
    """
    with entered(link) as (client, base, headers):
        while tasks := next_tasks(client, base):
            leased.clear()
            leased.update(number_of(task["statement"]) for task in tasks)
            for task in tasks:
                number = number_of(task["statement"])
                choice = {"option": "o0"} if int(number) % 7 else {"option": "x0", "reason": "fits-both"}
                answer = {"id": task["id"], "seconds": 1.0, **choice}
                sent.add(number)
                while (reply := client.post(f"{base}/api/answer", json=answer, headers=headers)).is_error:
                    assert reply.status_code == 429, reply.text
                    time.sleep(float(reply.headers.get("retry-after", 1)))
                saved.add(number)
