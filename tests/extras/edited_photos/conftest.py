"""Models of the tests of diffusion."""

from tests.models.diffusion.conftest import opens, saved  # noqa: F401 - fixtures
