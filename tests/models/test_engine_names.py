"""No engine's name stands outside of its own file: the classes of pipelines are data of one table."""

import re
from pathlib import Path

from twinset.models import image_engine
from twinset.models.pipelines.classes import PIPELINES

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGE = CHECKOUT / "src/twinset"
FILES = [PACKAGE / "__init__.py", *(path for room in PACKAGE.glob("*/") for path in room.rglob("*.py"))]
SOURCES = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in FILES}


def naming(pattern: str) -> set[str]:
    return {path for path, source in SOURCES.items() if re.search(pattern, source)}


def test_pipelines_are_named_in_their_table_alone() -> None:
    assert naming(rf"\b({'|'.join(PIPELINES)})\b") == {"models/pipelines/classes.py"}


def test_no_code_asks_for_an_engine_by_its_name() -> None:
    for name, place in image_engine.KINDS.items():
        own = f"{place.partition(':')[0].removeprefix('twinset.').replace('.', '/')}.py"
        assert naming(rf"""\bkind\b[^\n]{{0,60}}["'`]{re.escape(name)}["'`]""") == {own}, name
