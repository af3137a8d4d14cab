"""The contracts of evaluation models, metrics and exporters, as far as all keep them."""

import inspect
from pathlib import Path

import numpy as np
import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import SampleKind
from twinset.evaluation.metrics.row_values import RowValues
from twinset.evaluation.metrics.score_kinds import METRICS
from twinset.evaluation.scorers.kinds import MODELS, open_model
from twinset.models.encoders.contract import ModelKind
from twinset.shards.export.formats import EXPORTERS, Format

#: What --model writes after the kind, where files are named: ABSENT stands for a path that is not there.
ASKED = {
    **dict.fromkeys(("clip", "siglip", "blip-itm", "blip-itc", "blip2-itm", "blip2-itc", "vilt", "flava"), "ABSENT"),
    **{"open_clip": "ViT-B-32:ABSENT", "random": "ABSENT.json", "vlm": "ABSENT", "detections": "ABSENT"},
    **dict.fromkeys(("image-only", "text-only", "image+text"), "clip:ABSENT"),
    **dict.fromkeys(("combiner", "focus-attribute", "change-attribute"), "ABSENT:clip:ABSENT"),
}
#: A server is asked when a run begins.
SERVED = {"openai-chooser", "openai-yesno", "openai-vqascore"}


@pytest.mark.parametrize("kind", MODELS.own())
def test_a_kind_of_model_says_what_is_written_and_names_a_file_that_is_absent(kind: str, tmp_path: Path) -> None:
    found = MODELS.find(kind)
    assert isinstance(found, ModelKind) and found.form and found.parts >= 1
    assert kind in ASKED or kind in SERVED, f"kind of model {kind} has no case: write one in ASKED"
    if kind in ASKED:
        with pytest.raises(WrongUse, match="absent"):
            open_model(f"{kind}:{ASKED[kind].replace('ABSENT', str(tmp_path / 'absent'))}")


@pytest.mark.parametrize("name", METRICS.kinds())
def test_a_metric_is_a_function_of_columns_that_gives_row_values(name: str) -> None:
    metric = METRICS.find(name)
    columns = [*inspect.signature(metric).parameters]
    values = metric(**{column: np.array([0.0, 1.0]) for column in columns})
    strict = values.strict if isinstance(values, RowValues) else values
    assert columns and metric.__doc__ and all(np.shape(column) == (2,) for column in strict.values())


@pytest.mark.parametrize("name", EXPORTERS.own())
def test_an_exporter_says_what_it_takes_and_writes_nothing_of_nothing(name: str) -> None:
    found = EXPORTERS.find(name)
    assert isinstance(found, Format) and callable(found.write)
    assert found.takes and all(isinstance(one, SampleKind) for one in found.takes)
