"""The stage: rows brought together by caption, each text scored once, and what becomes of bad ones.

Each scorer on its published layout, against a transcription that reads one text at a time without padding.
"""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from safetensors.torch import save_file
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    CLIPModel,
    RobertaForSequenceClassification,
    T5EncoderModel,
)

from tests.generators.caption_scores.conftest import negatives
from tests.generators.caption_scores.tiny_scorers import (
    BIAS,
    READS,
    TEMPERATURE,
    TEXTS,
    save_open_clip,
    scored,
    settings,
)
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.contracts.parts import OutOfMemory
from twinset.contracts.recipe import content_of, load_recipe, parse_recipe
from twinset.generators.caption_scores.scorers.clip import Clip
from twinset.generators.caption_scores.scorers.scorer import Scored
from twinset.generators.caption_scores.source import ROWS, CaptionScores
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.rows import write_table_rows
from twinset.shards.storage.store import Store
from twinset.stages.run_here import build_here

PAIRS = (
    ("A man riding a horse.", "A man riding a bike."),
    ("A dog.", "A dog and a cat."),
    ("A man riding a horse.", "A woman riding a horse."),
    ("A dog.", "A dog on a hat."),
)


def source(folders: dict[str, Path], *kinds: str, **given: Any) -> CaptionScores:
    scorers = [{"kind": kind, "model": str(folders[kind]), "micro_batch": 4} for kind in kinds]
    return CaptionScores.model_validate(
        {"kind": "caption-scores", "negatives": "negatives", "scorers": scorers, **given}
    )


def opened(chosen: CaptionScores, table: FinishedStage) -> CaptionScores:
    return chosen.open(Context("scores", earlier=lambda _: table))


def made(generator: CaptionScores) -> list[TableRows | Rejected]:
    return list(generator.make(list(generator.plan())))


class Fixed:
    """A scorer whose numbers are given, and which counts what it is asked."""

    def __init__(self, values: dict[str, float]) -> None:
        self.values, self.asked = values, Counter[str]()
        self.sizes: list[int] = []

    def __call__(self, texts: Any, micro_batch: int) -> Scored:
        self.asked.update(texts)
        self.sizes.append(micro_batch)
        if micro_batch > 8:
            torch.empty(1 << 50)
        return Scored(np.array([self.values.get(text, 0.5) for text in texts]), np.zeros(len(texts), np.bool_))


def with_fixed(generator: CaptionScores, **values: float) -> Fixed:
    fixed = Fixed({text.replace("_", " "): value for text, value in values.items()})
    generator.__dict__["opened_scorers"] = [(generator.scorers[0], fixed)]
    return fixed


def test_rows_of_a_caption_come_together_with_the_identity_that_they_had(
    scorer_folders: dict[str, Path], tmp_path: Path
) -> None:
    planned = list(opened(source(scorer_folders, "cola"), negatives(tmp_path, PAIRS)).plan())
    assert [one.identity for one in planned] == [f'["add_obj/{n}"]' for n in (0, 2, 1, 3)]
    assert planned[0].group == planned[1].group != planned[2].group == planned[3].group
    assert [one.values["image_id"] for one in planned] == ["0.jpg", "2.jpg", "1.jpg", "3.jpg"]


def test_each_text_of_a_shard_is_scored_once(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    generator = opened(source(scorer_folders, "cola"), negatives(tmp_path, (*PAIRS, ("A dog and a cat.", "A dog."))))
    fixed = with_fixed(generator)
    assert len(made(generator)) == 5
    assert set(fixed.asked.values()) == {1} and len(fixed.asked) == 6


def test_scores_stand_in_their_columns(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    same = ("A dog.", "A dog.")
    table = negatives(tmp_path, (*PAIRS, same))
    rows = [
        one.rows[0] for one in made(opened(source(scorer_folders, "cola", "clip"), table)) if isinstance(one, TableRows)
    ]
    assert len(rows) == 5 and set(TEXT_SCORES) <= rows[0].keys()
    for row in rows:
        assert 0 < float(row["cola_caption"] or 0) < 1 and row["cola_negative"] != row["vera_negative"] is None
        assert row["lm_caption"] is None and -1 <= float(row["similarity"] or 0) <= 1 + 1e-6 and row["truncated"] == ""
    by_negative = {row["negative_caption"]: row for row in rows}
    assert by_negative["A dog."]["similarity"] == pytest.approx(1)
    assert by_negative["A dog."]["cola_negative"] == by_negative["A dog."]["cola_caption"]


def test_a_number_that_is_none_rejects_its_row_alone(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    generator = opened(source(scorer_folders, "language-model"), negatives(tmp_path, PAIRS))
    fixed = with_fixed(generator)
    fixed.values = {"A woman riding a horse.": float("nan"), "A dog.": float("-inf")}
    first, second, third, fourth = made(generator)
    assert isinstance(first, TableRows)
    for one, detail in ((second, "lm_negative"), (third, "lm_caption"), (fourth, "lm_caption")):
        assert isinstance(one, Rejected) and (one.reason, one.detail) == ("score-not-finite", detail)


def test_odd_texts_are_scored_or_named(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    odd = (("", "A dog."), ("A dog.", " \n"), ("猫が座っている。", "قطة 🙂"), ("A dog.", "A man riding " * 800_000))
    generator = opened(source(scorer_folders, "cola", "clip", "language-model"), negatives(tmp_path, odd))
    found = {
        json.loads(one.identity)[0][-1]: result for one, result in zip(generator.plan(), made(generator), strict=True)
    }
    assert [getattr(found[number], "reason", "") for number in "0123"] == ["no-text", "no-text", "", ""]
    cut = [one.rows[0]["truncated"] for one in (found["2"], found["3"]) if isinstance(one, TableRows)]
    assert cut == ["", "cola similarity lm"]
    only_empty = opened(source(scorer_folders, "cola"), negatives(tmp_path / "empty", [("", "")]))
    assert [getattr(one, "reason", "") for one in made(only_empty)] == ["no-text"]


def test_memory_that_runs_out_halves_the_passes(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    chosen = source(scorer_folders, "cola").model_dump(mode="json")
    chosen["scorers"][0]["micro_batch"] = 16
    generator = opened(CaptionScores.model_validate(chosen), negatives(tmp_path, PAIRS))
    fixed, threads = with_fixed(generator), torch.get_num_threads()
    with pytest.raises(OutOfMemory):
        made(generator)
    half = generator.with_micro_batch(generator.batch_size() // 2)
    assert len(made(half)) == 4 and fixed.sizes == [16, 8] and torch.get_num_threads() == threads
    made(half.with_micro_batch(1))
    assert fixed.sizes[-1] == 1 and generator.batch_size() == ROWS


def test_wrong_settings_are_named(
    scorer_folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValidationError, match="two scorers of kind cola would fill one column"):
        source(scorer_folders, "cola", "cola")
    missing = source({**scorer_folders, "clip": tmp_path / "none"}, "cola", "clip")
    with pytest.raises(WrongUse, match=r"s\.scorers\.1\.model: there is no model folder"):
        missing.check_inputs("s", ["models"])
    source(scorer_folders, "cola", "clip", "language-model").check_inputs("s", ["models", "media"])
    monkeypatch.setattr("twinset.models.device.find_spec", lambda name: None if name == "transformers" else name)
    with pytest.raises(WrongUse, match=r"s\.scorers\.1: transformers is not installed; .*'twinset\[language-models\]'"):
        language_model = source(scorer_folders, "clip", "language-model")
        monkeypatch.setattr(Clip, "libraries", lambda self: ("torch",))
        language_model.check_inputs("s", ["models", "media"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("twinset.models.language_models.settings.find_spec", lambda name: None)
    absent = source({"language-model": Path("smollm2")}, "language-model")
    with pytest.raises(WrongUse, match=r"scorers\.0\.model: the model smollm2 is not installed: pip install"):
        absent.check_inputs("s", ["models"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    on_gpu = source(scorer_folders, "cola", device="gpu")
    for call in (lambda: on_gpu.check_device("s"), opened(on_gpu, negatives(tmp_path, PAIRS)).runs_on):
        with pytest.raises(WrongUse, match="device is gpu, but torch finds no CUDA device"):
            call()


def test_a_shard_has_the_same_bytes_again(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    chosen, table = source(scorer_folders, "cola", "clip", "language-model"), negatives(tmp_path, PAIRS)
    for name in ("first", "second"):
        generator = opened(chosen, table)
        results = list(zip(generator.plan(), made(generator), strict=True))
        write_table_rows(results, generator.row_schema, tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    found = pq.read_table(tmp_path / "first")
    assert found["lm_caption"].type == pa.float64() and found["vera_caption"].null_count == 4


def test_where_models_lie_is_no_part_of_what_is_made(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/cola").symlink_to(scorer_folders["cola"])
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "name: n\nsubsets: {s: {source: {kind: caption-scores, negatives: ./out/negatives, "
        "scorers: [{kind: cola, model: ./models/cola}, {kind: language-model, model: smollm2, micro_batch: 8}]}}}\n"
    )
    subset = load_recipe(str(recipe))["s"]
    assert isinstance(subset.source, CaptionScores)
    assert subset.source.scorers[0].model == str(tmp_path / "models/cola")
    scorers = content_of(subset, 0)["source"]["scorers"]
    assert "model" not in scorers[0] and (scorers[1]["model"], scorers[1]["micro_batch"]) == ("smollm2", 8)


@pytest.mark.slow  # its workers are processes, which import torch
def test_a_build_gives_the_same_bytes_again(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    records = {str(n): {"filename": "1.jpg", "caption": a, "negative_caption": b} for n, (a, b) in enumerate(PAIRS)}
    (tmp_path / "replace_obj.json").write_text(json.dumps(records))
    replay = {"kind": "replayed-negatives", "captions": str(tmp_path / "replace_obj.json")}
    scores = source(scorer_folders, "language-model", negatives="copied").model_dump(mode="json")
    raw = {
        "name": "n",
        "stages": {"copied": {"source": replay}},
        "subsets": {"scores": {"source": scores, "shard_size": 2}},
    }
    tables = []
    for out in ("first", "second"):
        counts = build_here(parse_recipe(raw), str(tmp_path / out), 1)["subsets"]["scores"]
        assert (counts["planned"], counts["kept"]) == (4, 4)
        tables.append(FinishedStage(Store(str(tmp_path / out)), "scores").read(["identity", *TEXT_SCORES, "truncated"]))
    assert tables[0].equals(tables[1])
    assert tables[0]["lm_caption"].type == pa.float64() and tables[0]["vera_caption"].null_count == 4


@torch.inference_mode()
def mean_chances(folder: Path, texts: tuple[str, ...] = TEXTS) -> list[float]:
    """Mean log-probability of each text's tokens, one text at a time."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    means = []
    for text in texts:
        ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
        chances = model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(dim=1)
        means.append(float(np.mean([float(chances[n, token]) for n, token in enumerate(ids[1:])])))
    return means


def test_vera_is_its_head_on_the_end_of_the_text(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["vera"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), T5EncoderModel.from_pretrained(folder).eval()
    expected = []
    with torch.inference_mode():
        for text in TEXTS:
            ids = tokenizer(text, return_tensors="pt").input_ids
            assert ids[0, -1] == tokenizer.eos_token_id
            end = model(input_ids=ids).last_hidden_state[0, -1]
            logit = float(end @ model.shared.weight[32099]) + BIAS
            expected.append(1 / (1 + np.exp(-logit / TEMPERATURE)))
    found = scored("vera", folder).values
    assert np.allclose(found, expected, atol=1e-5) and np.ptp(found) > 0.01


def test_cola_is_the_second_class_and_loads_from_a_pickle_without_code(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["cola"]
    assert (folder / "pytorch_model.bin").is_file() and not (folder / "model.safetensors").exists()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = RobertaForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = [float(model(**tokenizer(text, return_tensors="pt")).logits.softmax(dim=1)[0, 1]) for text in TEXTS]
    assert np.allclose(scored("cola", folder).values, expected, atol=1e-5) and np.ptp(expected) > 0.01


def test_clip_gives_unit_embeddings_of_transformers(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["clip"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = CLIPModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        full = tokenizer(list(TEXTS), padding="max_length", max_length=77, return_tensors="pt")
        embeds = model(**full, pixel_values=torch.zeros(1, 3, *[model.config.vision_config.image_size] * 2)).text_embeds
    expected = (embeds / embeds.norm(dim=1, keepdim=True)).numpy()
    assert np.allclose(scored("clip", folder).values, expected, atol=1e-5)


def test_clip_gives_unit_embeddings_of_open_clip_with_its_activation(tmp_path: Path) -> None:
    quick = save_open_clip(tmp_path / "quick", quick_gelu=True)
    model = open_clip.create_model(f"local-dir:{quick}").eval()
    with torch.inference_mode():
        expected = model.encode_text(open_clip.tokenize(list(TEXTS)), normalize=True).numpy()
    found = scored("clip", quick)
    assert np.allclose(found.values, expected, atol=1e-5) and not found.truncated.any()
    slow = save_open_clip(tmp_path / "slow", quick_gelu=False)
    assert not np.allclose(scored("clip", slow).values, expected, atol=1e-4)
    assert scored("clip", quick, (f"{'dog ' * 75}", f"{'dog ' * 76}")).truncated.tolist() == [False, True]


def test_the_weights_that_open_clip_prefers_are_digested(tmp_path: Path) -> None:
    folder = save_open_clip(tmp_path / "clip")
    before, tensors = settings("clip", folder).weights(), torch.load(folder / "open_clip_pytorch_model.bin")
    tensors["text_projection"] *= torch.linspace(0.1, 3, tensors["text_projection"].shape[1])
    values = scored("clip", folder).values
    save_file(tensors, folder / "open_clip_pytorch_model.safetensors")
    assert not np.allclose(scored("clip", folder).values, values, atol=1e-3)
    assert settings("clip", folder).weights() != before


def test_open_clip_downloads_nothing(tmp_path: Path) -> None:
    text = {"context_length": 77, "width": 16, "hf_model_name": "roberta-base"}
    folder = save_open_clip(tmp_path / "clip")
    (folder / "open_clip_config.json").write_text(json.dumps({"embed_dim": 8, "text_cfg": text, "vision_cfg": {}}))
    with pytest.raises(WrongUse, match="text tower is built from another model's files"):
        scored("clip", folder)
    (folder / "open_clip_config.json").write_text("{}")
    with pytest.raises(WrongUse, match="not a configuration of open_clip"):
        scored("clip", folder)


def test_a_language_models_mean_is_that_of_one_text_at_a_time(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["language-model"]
    expected = mean_chances(folder)
    scorer = settings("language-model", folder).open("cpu")
    assert np.ptp(expected) > 0.5
    with torch.inference_mode():
        for micro_batch in (1, 2, 100):
            assert np.allclose(scorer(TEXTS, micro_batch).values, expected, atol=1e-4)


def test_a_tokenizer_with_more_tokens_than_the_network_is_refused(
    scorer_folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(scorer_folders["language-model"], tmp_path / "model")
    settings = json.loads((folder / "tokenizer_config.json").read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "bos_token": "NaN"}))
    with pytest.raises(WrongUse, match=r"model: its tokenizer has \d+ tokens and its network \d+"):
        scored("language-model", folder)


@pytest.mark.parametrize("kind", ["vera", "cola", "clip", "language-model"])
def test_padding_and_order_do_not_change_a_score(scorer_folders: dict[str, Path], kind: str) -> None:
    def all_with(texts: tuple[str, ...], micro_batch: int) -> NDArray[Any]:
        return scored(kind, scorer_folders[kind], texts, micro_batch).values

    together, alone = all_with(TEXTS, 100), all_with(TEXTS, 1)
    assert np.allclose(together, alone, atol=1e-5)
    # The same texts in another order are read in the same passes: the very same bits.
    assert np.array_equal(all_with(TEXTS[::-1], 4)[::-1], all_with(TEXTS, 4))


@pytest.mark.parametrize("kind", ["vera", "cola", "clip", "language-model"])
def test_a_long_text_is_cut_and_named(scorer_folders: dict[str, Path], kind: str) -> None:
    long = "A man riding a horse. " * 450_000
    assert len(long) > 9_000_000
    found = scored(kind, scorer_folders[kind], ("A man", long, "A dog."))
    assert found.truncated.tolist() == [False, True, False] and np.isfinite(found.values).all()


def test_what_just_fits_is_not_cut(scorer_folders: dict[str, Path]) -> None:
    fits, longer = "A man" + " man" * (READS - 2), "A man" + " man" * (READS - 1)
    assert scored("language-model", scorer_folders["language-model"], (fits, longer)).truncated.tolist() == [
        False,
        True,
    ]
    assert scored("language-model", scorer_folders["language-model"], (fits,), max_tokens=5).truncated.all()


def test_bfloat16_is_near_float32(scorer_folders: dict[str, Path]) -> None:
    for kind in ("vera", "cola", "language-model"):
        folder = scorer_folders[kind]
        half = scored(kind, folder, precision="bfloat16").values
        whole = scored(kind, folder).values
        assert np.allclose(half, whole, atol=0.3) and not np.array_equal(half, whole), kind
