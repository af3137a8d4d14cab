"""Small builds, which the tests of the engine make: here they are made on stores that fail."""

from tests.stages.conftest import files_below, media, planned_build

__all__ = ["files_below", "media", "planned_build"]
