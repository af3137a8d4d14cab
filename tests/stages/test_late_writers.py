"""A worker that was taken for dead and ends after everybody else: what it made changes nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stages.drawn_sources import MEANWHILE
from twinset.contracts.errors import BuildFailed
from twinset.stages.dataset import drop_duplicates
from twinset.stages.overview import verify_stage

SCENES = [("a", 1, 2), ("b", 1, 2), ("gone", 5, 6)]  # b repeats what a asks


def late(build: Any, shard: int, meanwhile: Callable[[], None]) -> Any:
    """Make a shard while other workers, which are not late, do something."""

    def once() -> None:
        MEANWHILE.clear()
        meanwhile()

    MEANWHILE.append(once)
    return build.make(shard)


def test_a_late_worker_does_not_bring_a_duplicate_back(tmp_path: Path, planned_build: Any, files_below: Any) -> None:
    build = planned_build(SCENES, 1)
    finished: dict[str, bytes] = {}

    def others_finish() -> None:
        build.make_all()
        assert drop_duplicates(build.store, {"eq-x": build.indexed()}) == ({"eq-x"}, {})
        build.indexed()
        finished.update(files_below(tmp_path / "out"))

    # The sample of the greater identity goes.
    dropped = int(build.candidates(0)[0].identity < build.candidates(1)[0].identity)
    receipt = late(build, dropped, others_finish)
    after = files_below(tmp_path / "out")
    build.store.sweep()
    assert {name for name in after if after[name] != finished.get(name)} == set()
    assert receipt == build.state().done[dropped] and receipt.duplicates
    assert list(verify_stage(build.store, build.state())) == []


def test_a_late_worker_of_an_older_plan_publishes_nothing(tmp_path: Path, planned_build: Any, files_below: Any) -> None:
    older = planned_build(SCENES, 1)
    finished: dict[str, bytes] = {}

    def others_build_anew() -> None:
        planned_build([("c", 7, 8), ("d", 9, 10)], 1, seed=1).make_all()
        finished.update(files_below(tmp_path / "out"))

    with pytest.raises(BuildFailed, match=r"eq-x: shard 00001 is not written.*planned again meanwhile"):
        late(older, 1, others_build_anew)
    assert files_below(tmp_path / "out") == finished

    with pytest.raises(BuildFailed, match="planned again meanwhile"):
        late(planned_build(SCENES, 1), 0, lambda: older.store.remove("eq-x/_meta/stage.json"))


def test_a_late_worker_that_lacked_media_replaces_no_shard(planned_build: Any, media: Path) -> None:
    build = planned_build(SCENES, 1)

    def media_appears() -> None:
        (media / "gone.mp4").write_bytes(b"here")
        build.make_all()

    assert late(build, 2, media_appears).kept == 1
    assert build.state().todo == []
