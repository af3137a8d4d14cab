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
    from twinset.review.tasks import ReviewTask


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
    images_at: str | None = None,
    import_: Path | None = None,
    annotator: str | None = None,
    withdraw: str | None = None,
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
        out: instead of the page: write tasks and answers into a file: .parquet, .json (Label Studio), .csv (Prolific)
        images_at: with --out: address of the page, at which the file then names images, served without a login
        import_: instead of the page: take answers from such a file
        annotator: who gave all answers of the imported file
        withdraw: instead of the page: end all links that this person was given, also on a page that is open now
    """
    from twinset.review.access import Access
    from twinset.review.opening import open_desk, open_links

    if len([one for one in (out, import_, withdraw) if one is not None]) > 1:
        raise WrongUse("--out, --import and --withdraw: each is a command of its own; name one")
    if annotator is not None and import_ is None:
        raise WrongUse("--annotator: says who gave the answers of --import FILE; for the page use --annotators")
    if images_at is not None and out is None:
        raise WrongUse("--images-at: where the images are served that the file of --out names; name that file, too")
    if withdraw is not None:
        open_links(dataset).withdraw(withdraw)
        return answer({"withdrawn": withdraw, "then": "the next twinset review prints a new link"})

    def on_decided(stage: str) -> None:
        tell(f"{stage}: all decisions are in; run the same build again")

    desk = open_desk(dataset, list(stage), on_decided)
    if desk is None:
        return answer({"links": {}, "waits": "nothing waits for people; none of its stages asks any"})
    try:
        if import_ is not None:
            return _import(desk, import_, annotator)
        proxy = _origin("--behind-https", behind_https) if behind_https else ""
        if not (people := [name.strip() for name in annotators.split(",") if name.strip()]):
            raise WrongUse("--annotators: name somebody, as in --annotators anna,ben")
        if prolific is not None and not re.fullmatch(r"[A-Za-z0-9]{1,32}", prolific):
            raise WrongUse(f"--prolific {prolific!r}: write the study's completion code, letters and digits")
        links = open_links(dataset)
        access = Access(desk.tasks.secret, people, behind_https=bool(proxy), links=links, days=days, study=prolific)
        if out is not None:
            return _write(desk, access, out, _origin("--images-at", images_at, "https?") if images_at else "")
        desk.announce()  # the answers may have come while nobody could be told
        if not stage and all(desk.is_decided(asked) for asked in desk.tasks.now().stages.values()):
            waits = "nothing waits for people: the decisions are in; --stage NAME serves them all the same"
            return answer({"links": {}, "waits": waits})
        _serve(desk, access, dataset.rstrip("/").rpartition("/")[2], host, port, proxy)
    finally:
        desk.store.close()


def _write(desk: "ReviewDesk", access: "Access", out: Path, served_at: str) -> None:
    """Write tasks and answers. served_at: where the page serves the images that the file names, if one is to say."""
    from twinset.review.app import EXPORTED
    from twinset.review.exchange.forms import form_of

    def address(task: "ReviewTask", number: int) -> str:
        return f"{served_at}{EXPORTED}{access.image_token(desk.tasks.image_id(task, number))}"

    tasks = desk.tasks.now().tasks
    answered = [(task, desk.answers_to(task)) for task in tasks]
    form_of(out).write(out, answered, desk.tasks.picture, address if served_at else None)
    answer({"answers": sum(len(answers) for _, answers in answered), "tasks": len(tasks), "out": out})


def _import(desk: "ReviewDesk", file: Path, annotator: str | None) -> None:
    from twinset.review.exchange.forms import form_of
    from twinset.review.exchange.importing import import_answers

    stages = desk.tasks.now().stages
    if len(stages) != 1:
        raise WrongUse(f"--import: name the stage with --stage ({', '.join(stages)})")
    (stage,) = stages.values()
    found = import_answers(form_of(file).read(file), stage, desk.store, annotator, str(file))
    answer({"stage": stage.name, **asdict(found)})
    desk.announce()


def _serve(desk: "ReviewDesk", access: "Access", title: str, host: str, port: int, proxy: str) -> None:
    from twinset.review.access import ADMIN, Person
    from twinset.review.app import make_app
    from twinset.review.opening import link, serve, study_link

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
        urls = {person.name: link(access, person, proxy or base) for person in people}
        urls |= {"prolific": study_link(access, proxy or base)} if access.study is not None else {}
        lines += [f"{name}: {url}" for name, url in urls.items()]
        lines.append(
            f"Links end after {access.seconds / 86_400:g} days; --withdraw NAME ends those of a person at once."
        )
        lines.append("Ctrl-C ends the page; every answer is stored.")
        answer({"links": urls}, lambda: say(*lines, sep="\n", flush=True))

    with contextlib.suppress(KeyboardInterrupt):  # not raised where the shell had SIGINT ignored, as for `nohup`
        serve(make_app(desk, access, title), host, port, on_ready)
    tell("stopped; every answer is stored")


def _origin(option: str, url: str, scheme: str = "https") -> str:
    """The address of the page, such as ``https://host:port``. Raises `WrongUse` for anything else."""
    if not re.fullmatch(rf"{scheme}://[A-Za-z0-9.\-\[\]:]+/?", url):
        raise WrongUse(f"{option} {url}: write https:// and a host alone; the page must lie at its root")
    return url.rstrip("/")
