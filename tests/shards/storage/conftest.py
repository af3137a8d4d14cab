"""Small builds, which the tests of the engine make: here they are made on stores that fail."""

from tests.stages.conftest import _package, drawn, files_below, greys, media, planned_build

__all__ = ["_package", "drawn", "files_below", "greys", "media", "planned_build"]
