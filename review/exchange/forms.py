"""The forms by name, and the form of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from twinset.manifests.errors import WrongUse
from twinset.review.exchange.form import Form
from twinset.review.exchange.label_studio import LabelStudio
from twinset.review.exchange.parquet import Parquet
from twinset.review.exchange.prolific import Prolific

FORMS: Mapping[str, Form] = {one.name: one for one in (Parquet(), LabelStudio(), Prolific())}


def form_of(path: Path, name: str | None) -> Form:
    """The form that is named, or else the one whose files end as this one; raises `WrongUse` without either."""
    if name is not None:
        return FORMS[name]
    for form in FORMS.values():
        if path.suffix.lower() == form.suffix:
            return form
    raise WrongUse(f"{path}: its form is not known by its name; name it with --form ({', '.join(FORMS)})")
