"""A module of somebody's package that fails when it is imported."""

1 / 0  # noqa: B018
