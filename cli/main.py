"""The ``twinset`` command. Exit codes: 0 done, 1 shards failed (the same command resumes), 2 wrong use, 3 decisions
of people are missing (``twinset review`` asks for them, the same command goes on).
"""

import argparse
import atexit
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from typing import NoReturn

from twinset.manifests.errors import DecisionsMissing, TwinsetError, WrongUse

RUNNERS = ("threads", "processes", "ray", "dask")  # the last two are Prefect's


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    _open_streams()
    try:
        asked = _parser().parse_args(arguments)
        logging.basicConfig(
            stream=sys.stderr, format="%(message)s", level=logging.INFO if asked.verbose else logging.WARNING
        )
        code = int(asked.run(asked) or 0)
        sys.stdout.flush()
        return code
    except WrongUse as error:
        _log_cause(error)
        print(f"twinset: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has seen enough, as with `twinset status OUT | head`; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as error:  # builds have their own way to end (`cli.commands.ending_at_once`)
        print("; ".join(["twinset: interrupted", *getattr(error, "__notes__", [])]), file=sys.stderr)
        if arguments is None:  # the process is this command
            _end_at_once(1)
        return 1
    except (TwinsetError, OSError) as error:
        _log_cause(error)
        remedy = ["remove the folder that lies where a file belongs"] if isinstance(error, IsADirectoryError) else []
        print("\n".join([f"twinset: {error}", *getattr(error, "__notes__", []), *remedy]), file=sys.stderr)
        return 3 if isinstance(error, DecisionsMissing) else 1


def _end_at_once(code: int) -> NoReturn:
    """End this process without Python's last collection of garbage, which takes seconds once torch is imported."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


def _open_streams() -> None:
    """Open those of stdin, stdout and stderr that the shell closed, as with ``>&-``, here and for child processes."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)  # unlike what Python opens
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def _log_cause(error: Exception) -> None:
    """Where in the code it began, for ``--verbose``: other people's sources and filters fail in their own ways."""
    if error.__cause__ is not None:
        logging.getLogger("twinset").info("Traceback of what follows:", exc_info=error.__cause__)


def _parser() -> argparse.ArgumentParser:
    # Not imported with this module: Ctrl-C meanwhile would end in a traceback.
    from twinset.cli import (
        eval_answers,
        eval_human,
        eval_probes,
        eval_report,
        eval_run,
        eval_scores,
        review,
        train,
    )
    from twinset.cli.commands import build, export, look, parse, plan, status, verify
    from twinset.cli.options import add_command
    from twinset.manifests.doors import installed
    from twinset.shards.export.formats import EXPORTERS

    parser = argparse.ArgumentParser(prog="twinset", description=__doc__)
    parser.add_argument("--version", action="version", version=f"twinset {version('twinset')}")
    parser.add_argument("--verbose", action="store_true", help="show log lines")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = partial(add_command, commands)

    def repeatable(added: argparse.ArgumentParser, option: str, metavar: str, text: str) -> None:
        added.add_argument(option, action="append", default=[], metavar=metavar, help=f"{text}; may be repeated")

    planning = command("plan", plan, "show the stages of a recipe and count what they would make; media are not needed")
    building = command("build", build, "build a recipe, or resume it")
    for added in (planning, building):
        added.add_argument("recipe", metavar="RECIPE", help="name of a shipped recipe, or path of a YAML file")
        repeatable(added, "--only", "SUBSET", "this subset and the stages it reads")
        repeatable(added, "--set", "KEY.PATH=VALUE", "override a setting")
        added.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    planning.add_argument(
        "--out",
        type=_place,
        help="write the plan below this folder or URL; where the recipe or an input changed, shards that are finished "
        "there become stale, and the card is removed, until they are built again",
    )
    building.add_argument("--out", type=_place, required=True, help="folder or fsspec URL of the dataset")
    parsing = command("parse", parse, "write the scene graphs (relations) of captions, or resume it")
    parsing.add_argument("captions", nargs="+", metavar="CAPTIONS", help="files and folders of captions")
    parsing.add_argument(
        "--to", type=_place, required=True, metavar="DIR", help="folder or fsspec URL of the relations"
    )
    parsing.add_argument("--pipeline", metavar="NAME|PATH", help="installed spaCy pipeline, or its folder")
    parsing.add_argument("--confirm", metavar="NAME|PATH", help="second pipeline: says whether it finds each relation")
    parsing.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    for added in (building, parsing):
        added.add_argument(
            "--workers", type=_count, default=0, metavar="N", help="shards at a time (default: one a core)"
        )
        added.add_argument("--verbose", action="store_true", default=argparse.SUPPRESS, help="show log lines")
    building.add_argument("--runner", choices=RUNNERS, default="threads", help="what makes the shards")
    telling = command("status", status, "show what is done, missing and stale")
    verifying = command("verify", verify, "hash everything again and name every problem")
    looking = command("look", look, "write contact sheets: a PNG for each subset, one HTML page")
    exporting = command("export", export, "write the dataset in another tool's format")
    for added in (telling, verifying, looking, exporting):
        added.add_argument("out", type=_place, metavar="OUT", help="folder or fsspec URL of the dataset")
    for added in (telling, verifying):
        added.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    for added in (verifying, looking, exporting):
        repeatable(added, "--only", "SUBSET", "this subset")
    verifying.add_argument("--media", action="store_true", help="hash the source media too")
    looking.add_argument("--count", type=int, default=24, metavar="N", help="samples a subset; N is part of file names")

    exporting.add_argument("--format", required=True, choices=EXPORTERS.kinds())
    exporting.add_argument("--to", type=_place, required=True, metavar="DIR", help="new folder for the export")
    text = "evaluate models: score benchmarks with them, measure and compare scores, write reports"
    evaluating = commands.add_parser("eval", help=text, description=text)
    evaluations = evaluating.add_subparsers(required=True, metavar="COMMAND")
    for module in (eval_run, eval_report, eval_scores, eval_answers, eval_human, eval_probes):
        module.add(evaluations)
    for brought in installed("twinset.eval_commands").values():
        brought.load()(evaluations)
    review.add(commands)
    train.add(commands)
    return parser


def _place(text: str) -> str:
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("name a folder or a URL such as s3://bucket/prefix")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: a name that is not UTF-8 cannot be recorded") from error
    return text


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}: write a number, 0 for one a core")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
