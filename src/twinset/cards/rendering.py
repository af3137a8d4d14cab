"""Text from the templates of cards and pages."""

from pathlib import Path
from typing import Any

from twinset.generators.markdown import templates

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, folder: Path = TEMPLATES, **values: Any) -> str:
    """The text of a template, such as ``pair.md.j2``.

    Args:
        folder: where it lies; it may include those of the cards.
    """
    return templates(folder, TEMPLATES).get_template(template).render(values)
