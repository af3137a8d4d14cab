"""A part of a loss that trains nothing is said once, and in the result."""

from twinset.training.runs.idle import PATIENCE, IdleParts, said_of


def test_a_part_that_is_idle_for_a_hundred_steps_is_said_once() -> None:
    idle = IdleParts(1000)
    said = [idle.add({"step": step, "active_v1": 0.0, "active_v2": 0.2, "loss": 0.0}) for step in range(1, 301)]
    assert [step for step, message in enumerate(said, 1) if message] == [PATIENCE]
    assert said[PATIENCE - 1].startswith("active_v1 (step 100): 0 for 100 steps running.") and "--margin-v1" in said[99]
    assert idle.found == {"active_v1": 100} and said_of(idle.found) == said[99]


def test_one_step_above_the_margin_begins_the_count_again_and_a_short_run_counts_whole() -> None:
    idle = IdleParts(1000)
    assert not any(idle.add({"step": step, "active_fraction": float(step == 60)}) for step in range(1, 150))
    assert idle.add({"step": 160, "active_fraction": 0.0}) == "" and not idle.found
    short = IdleParts(3)
    assert [bool(short.add({"step": step, "active_fraction": 0.0})) for step in (1, 2, 3)] == [False, False, True]
    assert said_of({}) == ""
