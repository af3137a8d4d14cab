"""What the reasons mean that records are left out, or samples rejected, for: ``reasons.toml`` beside the code."""

import tomllib
from functools import cache
from pathlib import Path


def reasons_beside(module: str, *names: str) -> dict[str, str]:
    """The reasons in these tables, in this order, with their meanings. module: ``__file__`` of what they lie beside."""
    tables = _tables(Path(module).with_name("reasons.toml"))
    return {reason: meaning for name in names for reason, meaning in tables[name].items()}


@cache
def _tables(file: Path) -> dict[str, dict[str, str]]:
    return tomllib.loads(file.read_text("utf-8"))
