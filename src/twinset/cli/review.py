"""``twinset review``: the page on which people decide, and their answers as files."""

import contextlib
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twinset.cli.command import Dataset, answer
from twinset.cli.terminal import say, tell
from twinset.contracts.errors import WrongUse

if TYPE_CHECKING:
    from twinset.review.access import Access
    from twinset.review.desk import ReviewDesk


DECIDED = "{}: all decisions are in; run the same build again"


def review(
    dataset: Dataset,
    *,
    stage: tuple[str, ...] = (),
    annotators: str = "me",
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535)] = 0,
    behind_https: str | None = None,
    days: Annotated[int, typer.Option(min=1, max=3650)] = 30,
    prolific: str | None = None,
    out: Path | None = None,
    import_: Path | None = None,
    annotator: str | None = None,
) -> None:
    """Ask people what a build waits for: serves a page, until it is interrupted; or exports and imports answers.

    Args:
        stage: name of a stage; all that ask people when absent
        annotators: names of those who get a link, with commas between them
        host: address to serve at; only this machine reaches 127.0.0.1
        port: 0: any that is free
        behind_https: address of the proxy with HTTPS that links name, such as https://review.example.org
        days: until links end
        prolific: completion code of a study on Prolific, whose link is printed too; its end shows the code
        out: instead of the page: write tasks and answers into a file, .parquet or .csv
        import_: instead of the page: take answers from such a file
        annotator: who gave the answers of the imported file's rows that name nobody
    """
    from twinset.review.access import Access
    from twinset.review.exchange import write_answers
    from twinset.review.opening import open_desk

    if out is not None and import_ is not None:
        raise WrongUse("--out and --import: each is a command of its own; name one")
    if annotator is not None and import_ is None:
        raise WrongUse("--annotator: says who gave the answers of --import FILE; for the page use --annotators")

    def on_decided(stage: str) -> None:
        tell(DECIDED.format(stage))

    desk = open_desk(dataset, list(stage), on_decided)
    if desk is None:
        return answer({"links": {}, "waits": "nothing waits for people; none of its stages asks any"})
    try:
        if import_ is not None:
            return _import(desk, import_, annotator)
        if out is not None:
            tasks, answers = write_answers(out, desk)
            return answer({"answers": answers, "tasks": tasks, "out": out})
        proxy = _origin(behind_https) if behind_https else ""
        if not (people := [name.strip() for name in annotators.split(",") if name.strip()]):
            raise WrongUse("--annotators: name somebody, as in --annotators anna,ben")
        if prolific is not None and not re.fullmatch(r"[A-Za-z0-9]{1,32}", prolific):
            raise WrongUse(f"--prolific {prolific!r}: write the study's completion code, letters and digits")
        access = Access(desk.tasks.secret, people, days=days, behind_https=bool(proxy), study=prolific)
        if not stage and all(desk.is_decided(asked) for asked in desk.tasks.now().stages.values()):
            waits = "nothing waits for people: the decisions are in, run the same build again; --stage NAME serves them"
            return answer({"links": {}, "waits": waits})
        _serve(desk, access, Path(dataset).resolve().name, host, port, proxy)
    finally:
        desk.store.close()


def _import(desk: "ReviewDesk", file: Path, annotator: str | None) -> None:
    from twinset.review.exchange import import_answers

    stages = desk.tasks.now().stages
    if len(stages) != 1:
        raise WrongUse(f"--import: name the stage with --stage ({', '.join(stages)})")
    (stage,) = stages.values()
    answer({"stage": stage.name, **asdict(import_answers(file, desk, annotator))})
    if desk.is_decided(stage):
        tell(DECIDED.format(stage.name))


def _serve(desk: "ReviewDesk", access: "Access", title: str, host: str, port: int, proxy: str) -> None:
    from twinset.review.access import ADMIN, Person
    from twinset.review.app import make_app
    from twinset.review.opening import serve

    def on_ready(base: str) -> None:
        if proxy:
            tell(f"{base} is what {proxy} must pass requests on to")
        elif host not in ("localhost", "127.0.0.1", "::1"):
            tell(f"warning: all who reach {host} read links, images and answers, which travel as plain text:")
            tell("put it behind a proxy with HTTPS, and name that with --behind-https")
        lines = []
        for stage in desk.tasks.now().stages.values():
            counts = desk.stage_counts(stage)
            ties = f"; ties that one more annotator must answer: {counts.tied:,}" if counts.tied else ""
            lines.append(f"{stage.name}: {counts.decided:,} of {counts.tasks:,} decisions are in{ties}")
        people = [*(Person(name, "annotator") for name in access.annotators), Person(ADMIN, "admin")]
        urls = {person.name: access.link(person, proxy or base) for person in people}
        urls |= {"prolific": access.study_link(proxy or base)} if access.study is not None else {}
        lines += [f"{name}: {url}" for name, url in urls.items()]
        lines.append(f"Links end after {access.seconds / 86_400:g} days.")
        lines.append("Ctrl-C ends the page; every answer is stored.")
        answer({"links": urls}, lambda: say(*lines, sep="\n", flush=True))

    with contextlib.suppress(KeyboardInterrupt):  # not raised where the shell had SIGINT ignored, as for `nohup`
        serve(make_app(desk, access, title), host, port, on_ready)
    tell("stopped; every answer is stored")


def _origin(url: str) -> str:
    """The address of the page, such as ``https://host:port``. Raises `WrongUse` for anything else."""
    if not re.fullmatch(r"https://[A-Za-z0-9.\-\[\]:]+/?", url):
        raise WrongUse(f"--behind-https {url}: write https:// and a host alone; the page must lie at its root")
    return url.rstrip("/")
