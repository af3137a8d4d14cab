"""Text from templates: HTML, where everything is escaped, and Markdown, where filters do it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinset.manifests.markdown import cell, listed, middle_and_most, plain, share, short, sizes, table

if TYPE_CHECKING:
    import jinja2

_FILTERS = {
    # A count with commas between thousands; a share (0-1) in per cent; a number without needless digits.
    "commas": "{:,}".format,
    "percent": "{:.1%}".format,
    "number": "{:g}".format,
    **{one.__name__: one for one in (cell, listed, middle_and_most, plain, share, short, sizes, table)},
}


@cache
def templates(*folders: Path) -> jinja2.Environment:
    """The templates of some folders; of those with one name, that of the first folder."""
    import jinja2  # a plan does without

    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= _FILTERS
    return found


def block_of(template: Path | None, name: str, **values: Any) -> str:
    """The text of one block of a template; empty where there is no such block, or no template."""
    if template is None:
        return ""
    found = templates(template.parent).get_template(template.name)
    return "".join(found.blocks[name](found.new_context(values))) if name in found.blocks else ""
