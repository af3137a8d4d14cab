"""Small finished datasets that tests of several rooms read, under the names that say what they hold."""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

from tests.benchmarks.measured import tell
from tests.made_datasets import built, made, made_pairs, made_templates, made_text_pairs, made_triplets
from tests.made_recipe import write_package
from tests.made_sources import test_sources
from twinset.contracts import doors
from twinset.contracts.recipe import allowed
from twinset.shards.storage import object_store

__all__ = ["built", "made", "made_pairs", "made_templates", "made_text_pairs", "made_triplets", "test_sources"]


# Before PyTorch is imported. Its threads wait for each other busily: with more of them than cores, as in two processes
# of tests, most of the time goes into that.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# As in the Makefile, also for who calls pytest: hundreds of processes need not compile again what they import.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# On a busy machine an example may take any time.
hypothesis.settings.register_profile("twinset", deadline=None)
hypothesis.settings.load_profile("twinset")

# Tests end processes by Ctrl-C's signal, which `nohup make test &` hands down as ignored.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

DAY = "TWINSET_TEST_DAY"
INSTALLED = doors.installed  # some tests replace it
BEGAN = time.monotonic()
#: What draws with Kubric, or builds the demo with it; the rest passes on any Python from 3.11 on.
NEED_BLENDER = (
    *(f"tests/generators/kubric_scenes/{part}" for part in ("test_assets.py", "test_source.py", "test_studio.py")),
    *(f"tests/end_to_end/{part}" for part in ("test_build.py", "server/test_deployment.py")),
    "tests/docker/test_pick_requirements.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--third", action="store_true", help="run a third of the files; which, depends on the day")
    parser.addoption("--minutes", type=float, help="skip tests that would begin later, for a run of limited time")


def pytest_configure(config: pytest.Config) -> None:
    os.environ[allowed.ANSWERS] = tempfile.gettempdir()  # recipes of tests keep answers in their folders
    object_store.SCHEMES = (*object_store.SCHEMES, "memory")  # an object store of this process
    kept = config.cache.mkdir("twinset")  # type: ignore[union-attr]
    os.environ["TWINSET_CACHE"] = str(kept)
    if not hasattr(config, "workerinput"):
        os.environ[DAY] = str(date.today().toordinal())  # one for all workers, also at midnight
        shutil.rmtree(kept / "review", ignore_errors=True)  # secrets of pages of the last run


@pytest.fixture(autouse=True)
def own_word() -> Iterator[None]:
    """What ``--set`` allows in a test is not allowed in the next."""
    answers = os.environ[allowed.ANSWERS]
    yield
    os.environ[allowed.ANSWERS] = answers
    os.environ.pop(allowed.KEYS, None)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """However many the test before left: those of two processes wait for each other busily, at times for minutes."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks() -> Iterator[None]:
    """Files need not outlive a power cut here; builds of many small shards wait for disks most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.getoption("--minutes")
    if minutes is not None and time.monotonic() - BEGAN > 60 * minutes:
        pytest.skip(f"it would begin more than {minutes:g} minutes into the run")
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("torch finds no CUDA device here")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "gpu" in report.keywords and (report.when == "call" or report.skipped):
        tell(report.nodeid.rpartition("::")[2], "", str(report.outcome), f"{report.duration:.1f} s")  # `make gpu`


@pytest.hookimpl(trylast=True)  # after -m chose by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--third"):
        limited = {item.path for item in items if item.get_closest_marker("timeout")}
        today = third_of(sorted({item.path for item in items}), limited, int(os.environ[DAY]))
        config.hook.pytest_deselected(items=[item for item in items if item.path not in today])
        items[:] = sorted((item for item in items if item.path in today), key=lambda item: today.index(item.path))
    if find_spec("bpy") is None:
        for item in items:
            if item.nodeid.startswith(NEED_BLENDER):
                item.add_marker(pytest.mark.skip(reason="Blender as a module is for Python 3.11 alone"))


def third_of(files: Sequence[Path], limited: Collection[Path], day: int) -> list[Path]:
    """The files of a day: within three days all have their turn.

    Neighbours, which take similar time, have different days. Tests with a limit of their own take longest: their files
    are dealt first, and begin first. The order of the rest is reversed every three days, so that what `--minutes` cut
    off comes before the others next time.

    Args:
        files: in a fixed order.
        limited: those with tests that have a limit of their own.
        day: its number.
    """
    today = sorted(files, key=lambda path: path not in limited)[day % 3 :: 3]
    return sorted(today[:: -1 if day // 3 % 2 else 1], key=lambda path: path not in limited)


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install a package, for this process: its name, a group of entry points, and those that it has there."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(doors, "installed", INSTALLED)

    def install(name: str, group: str, **points: str) -> None:
        write_package(tmp_path / f"in_{name}", name, {group: points})
        monkeypatch.syspath_prepend(str(tmp_path / f"in_{name}"))
        doors.all_installed.cache_clear()

    yield install
    doors.all_installed.cache_clear()
