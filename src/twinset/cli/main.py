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
from importlib.metadata import version
from typing import NoReturn

from twinset.cli.terminal import JsonLines, JsonStream, PlainLines, say
from twinset.contracts.errors import DecisionsMissing, TwinsetError, WrongUse


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    _open_streams()
    stderr = sys.stderr
    try:
        asked = _parser().parse_args(arguments)
        lines, as_json = logging.StreamHandler(), getattr(asked, "log", "text") == "json"
        lines.setFormatter(JsonLines() if as_json else PlainLines())
        logging.basicConfig(handlers=[lines], level=logging.INFO if asked.verbose else logging.WARNING)
        if as_json:
            logging.getLogger("twinset.shards").setLevel(logging.INFO)
            sys.stderr = JsonStream(stderr)
        asked.stdout = sys.stdout  # of `cli.options.answer` alone
        with contextlib.redirect_stdout(sys.stderr):
            code = int(asked.run(asked) or 0)
        sys.stdout.flush()
        return code
    except WrongUse as error:
        _log_cause(error)
        say(f"twinset: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has seen enough, as with `twinset status OUT | head`; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as error:  # builds have their own way to end (`cli.commands.ending_at_once`)
        say("; ".join(["twinset: interrupted", *getattr(error, "__notes__", [])]), file=sys.stderr)
        if arguments is None:  # the process is this command
            _end_at_once(1)
        return 1
    except (TwinsetError, OSError) as error:
        _log_cause(error)
        remedy = ["remove the folder that lies where a file belongs"] if isinstance(error, IsADirectoryError) else []
        say("\n".join([f"twinset: {error}", *getattr(error, "__notes__", []), *remedy]), file=sys.stderr)
        return 3 if isinstance(error, DecisionsMissing) else 1
    finally:
        sys.stderr = stderr


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
    from twinset.cli import commands, eval_answers, eval_probes, eval_run, eval_scores, review, slurm, train
    from twinset.cli.parser import Parser, add_completion, add_installed

    parser = Parser(prog="twinset", description=__doc__)
    parser.add_argument("--version", action="version", version=f"twinset {version('twinset')}")
    parser.add_argument("--verbose", action="store_true", help="show log lines")
    below = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add(below)
    slurm.add(below)
    text = "evaluate models: score benchmarks with them, measure and compare scores, write reports"
    evaluations = below.add_parser("eval", help=text, description=text).add_subparsers(required=True, metavar="COMMAND")
    for module in (eval_run, eval_scores, eval_answers, eval_probes):
        module.add(evaluations)
    add_installed("twinset.eval_commands", evaluations)
    review.add(below)
    train.add(below)
    add_completion(below, parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
