"""The ``twinset`` command. Exit codes: 0 done, 1 shards failed (the same command resumes), 2 wrong use, 3 decisions
of people are missing (``twinset review`` asks for them, the same command goes on).
"""

import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

from twinset.cli.terminal import Log, LogLines, tell
from twinset.contracts.errors import DecisionsMissing, TwinsetError, WrongUse

if TYPE_CHECKING:
    import typer


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    _open_streams()
    Log.json = False
    try:
        # Not imported with this module: Ctrl-C meanwhile would end in a traceback.
        import typer

        lines = logging.StreamHandler()
        lines.setFormatter(LogLines())
        logging.basicConfig(handlers=[lines])
        logging.getLogger().setLevel(logging.WARNING)
        program, words = typer.main.get_command(application()), sys.argv[1:] if arguments is None else [*arguments]
        if "_TWINSET_COMPLETE" in os.environ:  # a shell asks what may follow
            program.main(words, "twinset")
        with program.make_context("twinset", words) as context:
            code = int(program.invoke(context))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has seen enough, as with `twinset status OUT | head`; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as error:  # builds have their own way to end (`cli.commands.ending_at_once`)
        tell("; ".join(["twinset: interrupted", *getattr(error, "__notes__", [])]))
        return 1
    except (TwinsetError, OSError) as error:
        if error.__cause__ is not None:  # other people's sources and filters fail in their own ways: for --verbose
            logging.getLogger("twinset").info("Traceback of what follows:", exc_info=error.__cause__)
        remedy = ["remove the folder that lies where a file belongs"] if isinstance(error, IsADirectoryError) else []
        tell("\n".join([f"twinset: {error}", *getattr(error, "__notes__", []), *remedy]))
        return 2 if isinstance(error, WrongUse) else 3 if isinstance(error, DecisionsMissing) else 1
    except typer.TyperException as error:  # words of the command line are wrong
        path = getattr(getattr(error, "ctx", None), "command_path", "twinset")
        message = " ".join(error.format_message().replace("Value error, ", "").split()).removesuffix(".")
        tell(f"{path}: {message}{'' if message.endswith('?') else ';'} {path} --help explains")
        return error.exit_code
    except typer.Exit as ended:
        return ended.exit_code


def _open_streams() -> None:
    """Open those of stdin, stdout and stderr that the shell closed, as with ``>&-``: no file may take their numbers."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest free number, which is this
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def application() -> "typer.Typer":
    """All commands."""
    import typer

    from twinset.cli import commands, evaluation, train
    from twinset.cli.command import Commands, command
    from twinset.cli.kinds import kinds
    from twinset.cli.review import review
    from twinset.cli.slurm import slurm

    def show_version(given: bool) -> None:
        if given:
            print(f"twinset {version('twinset')}")
            raise typer.Exit

    app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]}, rich_markup_mode="rich")

    @app.callback(help="Builds minimal-pair datasets as sharded WebDatasets, and trains and evaluates models on them.")
    def options(
        version: Annotated[bool, typer.Option("--version", help="show it and exit", callback=show_version)] = False,
    ) -> None: ...

    for function in (commands.plan, commands.build, commands.parse, slurm, review, kinds):
        command(app, function, panel="Make a dataset")
    for reading in (commands.status, commands.verify, commands.look, commands.export, commands.publish):
        command(app, reading, panel="Read a dataset")
    training = typer.Typer(cls=train.TrainCommands, help="Train models on what twinset built.")
    measuring = typer.Typer(cls=Commands, help="Evaluate models: score benchmarks, compare scores, write reports.")
    command(training, train.grid)
    for measure in evaluation.COMMANDS:
        command(measuring, measure)
    app.add_typer(training, name="train", rich_help_panel="Models")
    app.add_typer(measuring, name="eval", rich_help_panel="Models")
    return app


if __name__ == "__main__":
    sys.exit(main())
