"""Errors in words."""

from twinset.contracts.errors import in_words


def test_a_library_that_finds_no_room_is_not_a_place_in_the_code() -> None:
    """What Python raises where ``ulimit -v`` stops the import of torch."""
    try:
        raise ImportError("libtorch_cpu.so: failed to map segment from shared object")
    except ImportError as error:
        said = in_words(error)
    assert said.startswith("memory runs out (libtorch_cpu.so") and ".py:" not in said


def test_memory_that_runs_out_is_told_with_what_to_do() -> None:
    assert in_words(MemoryError()).startswith("memory runs out (MemoryError); lift the limit (ulimit")
