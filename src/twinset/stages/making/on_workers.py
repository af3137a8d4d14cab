"""What a worker of a cluster does for a build, by name: it is asked by `stages.making.cluster`."""

from typing import Any

from twinset.contracts.errors import in_words
from twinset.stages.child_processes import close_children, run_in_child
from twinset.stages.job import forget_workers
from twinset.stages.making.make import make_shard

_builds = {"last": ""}  # that this worker made a shard of, where builds have names


def make_there(root: str, home: str, number: int, isolated: bool, build: str = "") -> dict[str, Any]:
    """Make one shard on a worker; returns its ``receipt``, or the ``error``, with the ``errno`` of a system's.

    build: a name of the build, where a worker that makes one shard at a time can outlive it; another one begins again.
    """
    try:
        if build != _builds["last"]:
            begin_there()
            _builds["last"] = build
        if isolated:
            return {"receipt": run_in_child(root, home, number)}
        return {"receipt": make_shard(root, home, number).model_dump(mode="json")}
    except OSError as error:
        return {"error": in_words(error), "errno": error.errno or 0}
    except (Exception, SystemExit) as error:
        return {"error": in_words(error)}


def begin_there() -> None:
    """Have a worker of an earlier build forget what it remembers of media, and end its idle children."""
    forget_workers()
    close_children()
