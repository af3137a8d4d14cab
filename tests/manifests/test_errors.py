"""Errors in words."""

from twinset.manifests.errors import in_words


def test_a_library_that_finds_no_room_is_not_a_place_in_the_code() -> None:
    """What Python raises where ``ulimit -v`` stops the import of torch."""
    try:
        raise ImportError("libtorch_cpu.so: failed to map segment from shared object")
    except ImportError as error:
        said = in_words(error)
    assert said.startswith("memory runs out while a library is loaded (libtorch_cpu.so") and ".py:" not in said
