"""docs/reference is what the code says, and the code explains every setting."""

import pytest
from pydantic import BaseModel, Field

from studies.reference.__main__ import FOLDER
from studies.reference.explained import explanations, items, sections
from studies.reference.pages import COMMAND, documented, pages
from studies.reference.settings_table import settings_table, unexplained


class Base(BaseModel):
    """What is shared.

    place: the folder; a name is looked up there. size: in pixels.
    """

    place: str
    size: int = Field(default=3, ge=1, le=9)


class Engine(Base):
    """An engine: it draws.

    size: as `Base`; low, high: of the range
    (0 to 1). Texts such as a: b are no setting.
    """

    low: float = 0.0
    high: float | None = None


def test_the_reference_is_that_of_the_code() -> None:
    there = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in {**there, **pages()} if there.get(name) != pages().get(name))
    assert stale == [], f"docs/reference is stale: run `{COMMAND}` and commit what it writes"


@pytest.mark.parametrize("settings", documented(), ids=lambda one: f"{one.__module__}.{one.__name__}")
def test_every_setting_is_explained(settings: type[BaseModel]) -> None:
    assert unexplained(settings) == [], "begin a sentence of the class's docstring with the setting's name and a colon"


def test_explanations_come_from_the_nearest_class_that_says_something() -> None:
    assert explanations(Engine, Engine.model_fields) == {
        "place": "the folder; a name is looked up there",
        "size": "in pixels",
        "low": "of the range (0 to 1). Texts such as a: b are no setting",
        "high": "of the range (0 to 1). Texts such as a: b are no setting",
    }


def test_a_table_has_type_bounds_and_default() -> None:
    lines = settings_table(Engine).splitlines()
    assert "| `place` | text | required | the folder; a name is looked up there |" in lines
    assert "| `size` | integer, ≥ 1, ≤ 9 | `3` | in pixels |" in lines
    assert lines[-1].startswith("| `high` | number or `null` | `null` |")


def test_sections_of_a_docstring() -> None:
    def call() -> None:
        """Do it.

        Args:
            one, two: numbers, the
                second larger.
            three: a name.

        Returns:
            ``nothing``.
        """

    found = sections(call)
    assert found[""] == "Do it." and found["Returns"] == "`nothing`."
    assert items(found["Args"]) == [("one, two", "numbers, the second larger."), ("three", "a name.")]
