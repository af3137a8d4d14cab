"""``twinset review``: the page on which people decide, and their answers as files."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from twinset.cli.options import add_arguments, add_described, answer
from twinset.cli.tables import print_columns
from twinset.cli.terminal import say
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinset.review.desk import ReviewDesk
    from twinset.review.tasks import ReviewTask


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset``."""
    reviewing = add_described(commands, "review", review, "dataset", "review")
    add_arguments(reviewing.add_mutually_exclusive_group(), "instead")


def review(asked: argparse.Namespace) -> None:
    """``twinset review``."""
    from twinset.review.opening import open_desk

    if asked.annotator is not None and asked.import_ is None:
        raise WrongUse("--annotator: says who gave the answers of --import FILE; for the page use --annotators")
    if asked.form is not None and asked.import_ is None and asked.out is None:
        raise WrongUse("--form: is that of the file of --import or --out; name one")

    if asked.images_at is not None and asked.out is None:
        raise WrongUse("--images-at: where the images are served that the file of --out names; name that file, too")
    if asked.withdraw is not None:
        _withdraw(asked)
        return

    def on_decided(stage: str) -> None:
        _tell(f"{stage}: all decisions are in; run the same build again")


    desk = open_desk(asked.dataset, asked.stage, on_decided)
    if desk is None:
        said = f"{asked.dataset}: nothing waits for people; none of its stages asks any"
        answer(asked, {"links": {}}, lambda: say(said))
        return
    try:
        if asked.out is not None:
            _write(desk, asked)
        elif asked.import_ is not None:
            _import(desk, asked)
        elif asked.agreement:
            _agreement(desk, asked)
        else:
            _serve(desk, asked)
    finally:
        desk.store.close()


def _withdraw(asked: argparse.Namespace) -> None:
    from twinset.review.opening import open_links

    open_links(asked.dataset).withdraw(asked.withdraw)
    said = f"{asked.withdraw}: no link of before opens the page any more; the next twinset review prints a new one"
    answer(asked, {"withdrawn": asked.withdraw}, lambda: say(said))


def _write(desk: ReviewDesk, asked: argparse.Namespace) -> None:
    from twinset.review.exchange.forms import form_of

    tasks = desk.tasks.now().tasks
    answered = [(task, desk.answers_to(task)) for task in tasks]
    form_of(asked.out, asked.form).write(asked.out, answered, desk.tasks.picture, _addresses(desk, asked))
    count = sum(len(answers) for _, answers in answered)
    said = f"{count:,} answers to {len(tasks):,} tasks in {asked.out}"
    answer(asked, {"answers": count, "tasks": len(tasks), "out": asked.out}, lambda: say(said))


def _addresses(desk: ReviewDesk, asked: argparse.Namespace) -> Callable[[ReviewTask, int], str] | None:
    """Where the page serves the images that a file names, if one is to say."""
    from twinset.review.access import Access
    from twinset.review.app import EXPORTED
    from twinset.review.opening import open_links

    if asked.images_at is None:
        return None
    base = _origin("--images-at", asked.images_at, "https?")
    access = Access(desk.tasks.secret, (), links=open_links(asked.dataset), days=asked.days)
    return lambda task, number: f"{base}{EXPORTED}{access.image_token(desk.tasks.image_id(task, number))}"


def _import(desk: ReviewDesk, asked: argparse.Namespace) -> None:
    from twinset.review.exchange.forms import form_of
    from twinset.review.exchange.importing import import_answers

    stages = desk.tasks.now().stages
    if len(stages) != 1:
        raise WrongUse(f"--import: name the stage with --stage ({', '.join(stages)})")
    stage = next(iter(stages.values()))
    rows = form_of(asked.import_, asked.form).read(asked.import_)
    found = import_answers(rows, stage, desk.store, asked.annotator, str(asked.import_))
    told = [f"{found.new:,} answers imported into {stage.name}"]
    told += [f"{found.known:,} were there"] if found.known else []
    told += [f"{found.others:,} of other stages left out"] if found.others else []
    told += [f"{found.unanswered:,} without an answer left out"] if found.unanswered else []
    answer(asked, {"stage": stage.name, **asdict(found)}, lambda: say("; ".join(told)))
    desk.announce()


def _agreement(desk: ReviewDesk, asked: argparse.Namespace) -> None:
    measured = {name: desk.agreement(stage) for name, stage in desk.tasks.now().stages.items()}
    answer(asked, measured, lambda: _print_agreement(measured))


def _print_agreement(measured: dict[str, Any]) -> None:
    for name, found in measured.items():
        if found["pairs"]:
            rows = [
                [name, " and ".join(one["annotators"]), str(one["tasks"]), _kappa(one["kappa"])]
                for one in found["pairs"]
            ]
            print_columns(("stage", "annotators", "tasks", "kappa"), [*rows, [name, "mean", "", _kappa(found["mean"])]])
        else:
            say(f"{name}: no task has answers of two annotators; agreement is not measured")


def _kappa(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _serve(desk: ReviewDesk, asked: argparse.Namespace) -> None:
    from twinset.review.access import ADMIN, Access, Person
    from twinset.review.app import make_app
    from twinset.review.opening import link, open_links, serve, study_link

    desk.announce()  # the answers may have come while nobody could be told
    stages = desk.tasks.now().stages.values()
    if not asked.stage and all(desk.is_decided(stage) for stage in stages):
        said = f"{asked.dataset}: nothing waits for people: the decisions are in; --stage NAME serves them all the same"
        answer(asked, {"links": {}}, lambda: say(said))
        return
    names = [name.strip() for name in asked.annotators.split(",") if name.strip()]
    if not names:
        raise WrongUse("--annotators: name somebody, as in --annotators anna,ben")
    proxy = _origin("--behind-https", asked.behind_https) if asked.behind_https else ""
    if asked.prolific is not None and not re.fullmatch(r"[A-Za-z0-9]{1,32}", asked.prolific):
        raise WrongUse(f"--prolific {asked.prolific!r}: write the study's completion code, letters and digits")
    links = open_links(asked.dataset)
    access = Access(
        desk.tasks.secret, names, behind_https=bool(proxy), links=links, days=asked.days, study=asked.prolific
    )
    dataset = asked.dataset.rstrip("/").rpartition("/")[2] or asked.out

    def on_ready(base: str) -> None:
        lines = [f"{base} is what {proxy} must pass requests on to"] if proxy else []
        base = proxy or base
        for stage in stages:
            counts = desk.stage_counts(stage)
            ties = f"; ties that one more annotator must answer: {counts.tied:,}" if counts.tied else ""
            lines.append(f"{stage.name}: {counts.decided:,} of {counts.tasks:,} decisions are in{ties}")
        people = [*(Person(name, "annotator") for name in access.annotators), Person(ADMIN, "admin")]
        urls = {person.name: link(access, person, base) for person in people}
        if asked.prolific is not None:
            urls["prolific"] = study_link(access, base)
        lines += [f"{name}: {url}" for name, url in urls.items()]
        lines.append(f"Links end after {asked.days} days; --withdraw NAME ends those of a person at once.")
        lines.append("Ctrl-C ends the page; every answer is stored.")
        answer(asked, {"links": urls}, lambda: say(*lines, sep="\n", flush=True))
        if not is_loopback(asked.host) and not proxy:
            _tell(
                f"warning: all who reach {asked.host} see this page, and links, images and answers travel as plain "
                "text: put it behind a proxy with HTTPS, and name that with --behind-https"
            )

    with contextlib.suppress(KeyboardInterrupt):  # not raised where the shell had SIGINT ignored, as for `nohup`
        serve(make_app(desk, access, dataset), asked.host, asked.port, on_ready)
    _tell("stopped; every answer is stored")


def _origin(option: str, url: str, scheme: str = "https") -> str:
    """The address of the page, such as ``https://host:port``. Raises `WrongUse` for anything else."""
    if not re.fullmatch(rf"{scheme}://[A-Za-z0-9.\-\[\]:]+/?", url):
        raise WrongUse(f"{option} {url}: write https:// and a host alone; the page must lie at its root")
    return url.rstrip("/")


def _tell(line: str) -> None:
    say(line, file=sys.stderr, flush=True)
