"""Text from templates: HTML, where everything is escaped, and Markdown, where filters do it."""

from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from twinset.manifests.markdown import cell, listed, middle_and_most, plain, share, short, sizes

TEMPLATES = Path(__file__).parent / "templates"
_FILTERS = {
    # A count with commas between thousands; a share (0-1) in per cent.
    "commas": "{:,}".format,
    "percent": "{:.1%}".format,
    **{one.__name__: one for one in (cell, listed, middle_and_most, plain, share, short, sizes)},
}


def render(template: str, folder: Path = TEMPLATES, **values: Any) -> str:
    """The text of a template, such as ``pair.md.j2``.

    Args:
        folder: where it lies; it may include those of the cards.
    """
    return _templates(folder).get_template(template).render(values)


@cache
def _templates(folder: Path) -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, TEMPLATES]),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= _FILTERS
    return templates
