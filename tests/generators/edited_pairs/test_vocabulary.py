"""Edited pairs as they come out of the generator, with a tiny model of random weights.

Only the broken is rejected, and how alike two pictures are is measured within and without the edit.

Drawn pairs of captions: one difference each, evenly spread, the same however many are asked for.
The captions of EQ-SD: those of Figure 15, and of one's own files.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.generators.prompt_to_prompt.tiny_models import save_stable_diffusion
from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.contracts.parts import OutOfMemory
from twinset.generators.edited_pairs import painter
from twinset.generators.edited_pairs.source import NO_SIMILARITY, StableDiffusion, broken, similarity
from twinset.generators.edited_pairs.vocabulary import (
    KINDS,
    CaptionVocabulary,
    DrawnEdit,
    EditedCandidate,
    draw_edits,
    load_captions,
    vocabulary_file,
)
from twinset.generators.prompt_to_prompt import attention
from twinset.shards.contracts import Context


def planned(generator: StableDiffusion, count: int) -> list[EditedCandidate]:
    return list(islice(generator.plan(), count))


def images(made: Sequence[Any]) -> list[Pixels]:
    assert all(isinstance(one, Pair) for one in made)
    return [frame.pixels for one in made for frame in (one.image0, one.image1)]


def test_every_candidate_gets_its_pair_in_order(drawing_with: Any) -> None:
    generator = drawing_with(micro_batch=2, blend=True)
    candidates = planned(generator, 5)
    made = list(generator.make(candidates))
    assert [one.key for one in made] == [one.key for one in candidates]
    assert all(image.shape == (64, 64, 3) and image.dtype == np.uint8 for image in images(made))
    assert [one.change for one in made] == [one.change for one in candidates] and len({one.group for one in made}) == 5
    # Tables of samples are read by their first row: the same names and types everywhere.
    shapes = [{name: type(value) for name, value in one.provenance.items()} for one in made]
    assert all(shape == shapes[0] for shape in shapes) and set(shapes[0].values()) <= {str, int, float}
    assert all(one.scores.keys() == {"region", "similarity_inside", "similarity_outside"} for one in made)
    assert all(0 < one.scores["region"] <= 1 and 0 <= one.scores["similarity_inside"] <= 1 for one in made)
    whole = [one for one in candidates if not one.region0]
    assert whole and all(made[candidates.index(one)].scores["region"] == 1 for one in whole)
    # Where the whole picture changes by design there is nothing to look at.
    assert all(made[candidates.index(one)].scores["similarity_outside"] == -1 for one in whole)
    assert not any(made[candidates.index(one)].flags for one in whole)


def test_an_edit_with_attention_everywhere_is_flagged(drawing_with: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "THRESHOLD", -1.0)
    generator = drawing_with(micro_batch=4, blend=True)
    candidates = planned(generator, 4)
    made = list(generator.make(candidates))
    assert [one.flags for one in made] == [("region-everywhere",) if one.region0 else () for one in candidates]
    assert any(one.flags for one in made) and all(one.scores["similarity_outside"] == -1 for one in made)
    canonical_json([one.provenance for one in made])


def test_pixels_come_from_the_weights(drawing_with: Any, tiny_model: Any) -> None:
    generator = drawing_with()
    (pair,) = generator.make(planned(generator, 1))
    source = pair.image0.source
    assert source == pair.image1.source and source.path == "unet/diffusion_pytorch_model.safetensors"
    assert source.size == (tiny_model / source.path).stat().st_size
    assert {one.path.partition("/")[0] for one in pair.sources} == {"text_encoder", "vae"}
    assert str(tiny_model) not in json.dumps([dict(pair.provenance), [one.path for one in pair.sources]])


def test_the_same_bytes_every_time_and_others_with_another_seed(drawing_with: Any) -> None:
    candidates = planned(drawing_with(), 4)
    first, second = (images(list(drawing_with().make(candidates))) for _ in range(2))
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    other = drawing_with().source.open(Context("eq-sd", seed=1))
    assert not any(
        np.array_equal(one, two) for one, two in zip(images(list(other.make(candidates))), first, strict=True)
    )


def test_a_pair_hardly_depends_on_the_micro_batch(drawing_with: Any) -> None:
    generator = drawing_with(micro_batch=4)
    candidates = planned(generator, 4)
    whole, single = (images(list(one.make(candidates))) for one in (generator, generator.with_micro_batch(1)))
    assert generator.batch_size() == 4
    apart = [np.abs(one.astype(int) - other).max() for one, other in zip(whole, single, strict=True)]
    assert max(apart) <= 2


def test_a_pair_does_not_depend_on_how_many_others_are_made(drawing_with: Any) -> None:
    generator = drawing_with(micro_batch=4, blend=True)
    candidates = planned(generator, 4)
    whole = images(list(generator.make(candidates)))
    fewer = images(list(generator.make(candidates[:3])))
    assert all(np.array_equal(one, other) for one, other in zip(fewer, whole[:6], strict=True))
    unfit = replace(candidates[0], captions1=("A photo of " + "very " * 80 + "red ball.",))
    _, *rest = generator.make([unfit, *candidates[1:]])
    assert all(np.array_equal(one, other) for one, other in zip(images(rest), whole[2:], strict=True))


def test_similarity_is_of_a_region_with_and_without_local_blend(
    drawing_with: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "THRESHOLD", 0.99)  # random weights attend to all places nearly alike
    candidates = [one for one in planned(drawing_with(), 8) if one.region0]
    for blend in (False, True):
        made = list(drawing_with(micro_batch=4, blend=blend).make(candidates))
        assert all(0 < one.scores["region"] < 1 and one.scores["similarity_inside"] < 1 for one in made)
        assert any(one.scores["similarity_outside"] < 1 for one in made)
        named = {(one.provenance["blend0"], one.provenance["blend1"]) for one in made}
        assert named == ({(one.region0, one.region1) for one in candidates} if blend else {("", "")})


def test_either_image_can_be_the_edited_one(drawing_with: Any) -> None:
    generator = drawing_with(blend=True)
    candidate = next(one for one in generator.plan() if one.plain == 1 and one.region0)
    turned = replace(
        candidate,
        captions0=candidate.captions1,
        captions1=candidate.captions0,
        region0=candidate.region1,
        region1=candidate.region0,
        plain=0,
    )
    (pair,), (mirrored,) = generator.make([candidate]), generator.make([turned])
    assert np.array_equal(pair.image0.pixels, mirrored.image1.pixels)
    assert np.array_equal(pair.image1.pixels, mirrored.image0.pixels)
    assert (pair.provenance["blend0"], pair.provenance["blend1"]) == (candidate.region0, candidate.region1)
    assert pair.scores == mirrored.scores


def test_figure_15_goes_through_the_structure_of_stable_diffusion(drawing_with: Any, tmp_path: Path) -> None:
    settings = {"model": str(save_stable_diffusion(tmp_path)), "vocabulary": "figure-15", "resolution": 64}
    generator = drawing_with(**settings, guidance=7.5, blend=True, micro_batch=3)
    candidates = planned(generator, 3)
    assert {one.change for one in candidates} == {"object", "scene", "attribute"}
    made = list(generator.make(candidates))
    assert all(image.shape == (64, 64, 3) for image in images(made))
    assert {pair.provenance["scheduler"] for pair in made} == {"ddim"}


def test_captions_that_the_model_cannot_read_are_rejected_alone(drawing_with: Any) -> None:
    generator = drawing_with()
    candidates = planned(generator, 3)
    long = ("A photo of " + "very " * 40 + f"red {candidates[1].region1}.",)
    candidates[1] = replace(candidates[1], captions1=long)
    first, rejected, last = list(generator.make(candidates))
    assert isinstance(rejected, Rejected) and rejected.reason == "caption-unfit" and "tokens" in rejected.detail
    assert isinstance(first, Pair) and isinstance(last, Pair)


def test_numbers_that_overflow_are_rejected(drawing_with: Any) -> None:
    generator = drawing_with()
    generator._painter._pipeline.unet.conv_out.bias.data.fill_(torch.nan)
    assert [one.reason for one in generator.make(planned(generator, 2))] == ["not-finite", "not-finite"]


def test_a_gpu_without_memory_is_told_from_other_trouble(drawing_with: Any) -> None:
    generator = drawing_with()

    generator._painter._pipeline = _Full(generator._painter._pipeline.align)
    with pytest.raises(OutOfMemory, match="Tried to allocate"):
        list(generator.make(planned(generator, 2)))


def test_a_model_that_does_not_fit_into_memory_is_said(drawing_with: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painter, "load_model", lambda *_: torch.empty(1 << 50))
    generator = drawing_with()
    with pytest.raises(BuildFailed, match=r"memory runs out while .* of eq-sd is loaded .*; end what else fills it"):
        list(generator.make(planned(generator, 1)))


class _Full:
    """A pipeline that aligns captions and has no memory to draw them."""

    def __init__(self, align: Any) -> None:
        self.align = align

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def test_settings_that_do_not_fit_the_model_or_machine_are_said(drawing_with: Any) -> None:
    generator = drawing_with(resolution=96)
    assert images(list(generator.make(planned(generator, 1))))[0].shape == (96, 96, 3)
    assert drawing_with().device() == "cpu"
    half = drawing_with(precision="float16")
    assert images(list(half.make(planned(half, 1))))[0].any() and half._painter._pipeline.unet.dtype == torch.float16
    if not torch.cuda.is_available():
        with pytest.raises(WrongUse, match="torch finds no CUDA device here; write `device: cpu`"):
            drawing_with(device="gpu").device()


def test_the_weights_are_part_of_what_decides_the_bytes(drawing_with: Any, tmp_path: Any) -> None:
    weights = drawing_with().weights()
    assert weights.keys() == {"model"} and len(weights["model"]) == 32
    with pytest.raises(WrongUse, match="there is no model folder"):
        drawing_with(model=str(tmp_path / "nowhere")).weights()


def test_more_steps_than_the_model_was_trained_with_are_refused(
    drawing_with: Callable[..., StableDiffusion], tiny_model: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    (folder / "scheduler/scheduler_config.json").write_text(json.dumps({"num_train_timesteps": 10}))
    generator = drawing_with(model=str(folder), steps=11)
    with pytest.raises(WrongUse, match=r"eq-sd: source.steps must be at most 10 for .*model"):
        list(generator.make(planned(generator, 1)))


NOISE = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), np.uint8)


def test_only_the_broken_is_rejected() -> None:
    first, second = NOISE
    assert broken(first, second, True) == ""
    assert broken(first, second, False) == "not-finite"
    assert broken(first, first.copy(), True) == "identical"
    even = np.full((8, 8, 3), (200, 10, 30), np.uint8)
    assert broken(first, even, True) == broken(np.zeros_like(first), second, True) == "blank"
    nearly = even.copy()
    nearly[3, 3, 0] += 1
    assert broken(nearly, even + 1, True) == "blank" and broken(nearly, first, True) == ""
    almost = first.copy()
    almost[0, 0, 0] ^= 1
    assert broken(first, almost, True) == ""


def test_similarity_is_measured_within_and_without() -> None:
    black, changed = np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8, 3), np.uint8)
    region = np.zeros((8, 8), np.bool_)
    region[:2] = True
    changed[0] = 255
    changed[7, 0] = (51, 0, 0)
    found = similarity(black, changed, region)
    assert found == {
        "region": 0.25,
        "similarity_inside": 0.5,
        "similarity_outside": pytest.approx(1 - 51 / (48 * 3 * 255)),
    }
    assert similarity(changed, black, region) == found


def test_without_an_outside_it_has_no_score() -> None:
    first, second = NOISE
    found = similarity(first, second, np.ones((8, 8), np.bool_))
    assert (
        found["region"] == 1 and found["similarity_outside"] == NO_SIMILARITY and 0.5 < found["similarity_inside"] < 0.8
    )


GOLDEN = {"figure-15": "51bfd7d16c451d26343ce779069a5e43", "small-world": "cd7af4b3fc2e0b3792c974aae8c4b8d4"}


def _without(caption: str, word: str) -> list[str]:
    said = f" {caption.rstrip('.')} "
    assert not word or said.count(f" {word} ") == 1
    return said.replace(f" {word} ", " ").split()


def drawn(name: str, count: int, seed: int = 0, subset: str = "eq-sd") -> list[DrawnEdit]:
    return list(islice(draw_edits(load_captions(vocabulary_file(name)), seed, subset), count))


@pytest.mark.parametrize("name", GOLDEN)
def test_the_captions_of_a_pair_differ_in_its_words_alone(name: str) -> None:
    for pair in drawn(name, 300):
        rest = [_without(caption, word) for caption, word in zip(pair.captions, pair.words, strict=True)]
        assert pair.words[0] != pair.words[1] and rest[0] == rest[1]
        for caption, word in zip(pair.captions, pair.region or (), strict=False):
            assert f" {word} " in f" {caption.rstrip('.')} "


@pytest.mark.parametrize("name", GOLDEN)
def test_kinds_rows_and_words_come_equally_often(name: str) -> None:
    pairs, vocabulary = drawn(name, 1513), load_captions(vocabulary_file(name))
    kinds = Counter(pair.kind for pair in pairs)
    assert set(kinds) == set(KINDS) and max(kinds.values()) - min(kinds.values()) <= 1
    for kind in KINDS:
        sides = Counter(pair.plain for pair in pairs if pair.kind == kind)
        assert abs(sides[0] - sides[1]) <= 0.1 * kinds[kind]
        for number in vocabulary.of_kind(kind):
            row = vocabulary.rows[number]
            said = Counter(word for pair in pairs if pair.row == number for word in pair.words)
            assert set(said) == set(row.words[row.changes]) and max(said.values()) <= 1.35 * min(said.values())


def test_captions_come_again_only_when_they_must() -> None:
    pairs = [pair for pair in drawn("figure-15", 1513) if pair.kind == "object"]
    distinct = {frozenset(pair.captions) for pair in pairs}
    # 63 or 64 pairs of each of eight sets, the smallest of which can be said in 4, 4, 18, 24, 36 and 40 ways.
    assert len(pairs) == 505 and len(distinct) > 0.9 * (4 + 4 + 18 + 24 + 36 + 40 + 2 * 63)
    small = drawn("small-world", 300)
    assert len({frozenset(pair.captions) for pair in small}) > 280


def test_a_phrase_is_always_added_to_the_picture_without_it() -> None:
    with_and_without = [pair for pair in drawn("figure-15", 900) if "" in pair.words]
    assert {pair.kind for pair in with_and_without} == {"scene", "attribute"}
    assert all(pair.words[pair.plain] == "" for pair in with_and_without)
    assert {pair.plain for pair in with_and_without} == {0, 1}


def test_the_stream_of_a_version_never_changes() -> None:
    # Raise the version of `StableDiffusion` with these.
    found = {name: digest([asdict(pair) for pair in drawn(name, 100)]) for name in GOLDEN}
    assert (StableDiffusion.version, found) == (3, GOLDEN)


def test_asking_for_more_keeps_the_first_ones_and_another_seed_or_subset_draws_others() -> None:
    assert drawn("figure-15", 200)[:50] == drawn("figure-15", 50)
    others = [drawn("figure-15", 50, seed=1), drawn("figure-15", 50, subset="eq-sd-2")]
    assert drawn("figure-15", 50) not in others and others[0] != others[1]


def captions(name: str) -> set[str]:
    """All captions of a vocabulary."""
    found = set()
    for row in load_captions(vocabulary_file(name)).rows:
        found |= {row.caption(dict(zip(row.words, chosen, strict=True))) for chosen in product(*row.words.values())}
    return found


def test_figure_15_has_the_captions_that_the_paper_prints() -> None:
    printed = """A painting of cat wearing a cap. A painting of cat wearing a crown. A pencil sketch of train.
        A Van Gogh post-impressionism painting of train. A painting of squirrel eating. A painting of fox eating.
        A photo of a blue desk. A photo of a brown desk. A photo of beach. A photo of beach at sunset."""
    found = captions("figure-15")
    assert {f"{one.strip()}." for one in " ".join(printed.split()).split(".") if one} <= found
    assert {"A photo of cat.", "An oil painting of bus.", "A photo of a house on a mountain at fog."} <= found
    # 8 sets of objects and scenes in two styles, 4 scenes, 3 rows of attributes, as the figure lists them.
    by_kind = {kind: len(load_captions(vocabulary_file("figure-15")).of_kind(kind)) for kind in KINDS}
    assert by_kind == {"object": 8, "scene": 4, "attribute": 3}
    objects = 2 * (7 * 4 + 7 * 5 + 3 * 4 + 3 * 3 + 2 * 2 + 5 * 2 + 2 * 2 + 4 * 3)
    assert len(found) == objects + (7 + 6 + 6 + 4) + (2 * 2 * 6 + 2 * 10 * 4 + 10 * 4)


def test_only_what_goes_together_is_said() -> None:
    found = captions("figure-15")
    assert "A photo of shark under the water." in found and "A photo of zebra in the zoo." in found
    assert (
        not {"A photo of shark in the zoo.", "A photo of zebra under the water.", "A photo of beach at fall."} & found
    )


@pytest.mark.parametrize("name", ["figure-15", "small-world"])
def test_every_caption_is_a_sentence(name: str) -> None:
    for caption in captions(name):
        assert caption[0] == "A" and caption.endswith(".") and caption.count(".") == 1
        assert "  " not in caption and " ." not in caption


def test_a_vocabulary_is_a_name_that_is_known_here_or_a_file(tmp_path: Path) -> None:
    assert vocabulary_file(str(tmp_path / "words.yaml")) == tmp_path / "words.yaml"
    with pytest.raises(
        WrongUse, match=r"no vocabulary 'figure-16' here; name one of figure-15, small-world, or a YAML"
    ):
        vocabulary_file("figure-16")


ROW: dict[str, Any] = {
    "kind": "object",
    "template": "A {thing}.",
    "changes": "thing",
    "words": {"thing": ["cat", "dog"]},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"template": "A {thing} {place}."}, "each of its slots needs words"),
        ({"template": "A {thing!r}."}, "each of its slots needs words"),
        ({"template": "A {thing."}, "template"),
        ({"template": "A {thing.__class__}."}, "each of its slots needs words"),
        ({"template": "A {thing} and {thing}."}, "each of its slots needs words"),
        ({"changes": "place"}, "'place' is no slot"),
        ({"region": "place"}, "'place' is no slot"),
        ({"words": {"thing": ["cat"]}}, "two words that can differ"),
        ({"words": {"thing": ["cat", "cat"]}}, "stands twice"),
        ({"words": {"thing": ["cat", " dog"]}}, "pattern"),
        ({"words": {"thing": ["cat", "<b>"]}}, "pattern"),
        ({"words": {"thing": ["cat", ""]}, "region": "thing"}, "must be said in both captions"),
        ({"kind": "style"}, "kind"),
        ({"words": {"thing": []}}, "at least 1 item"),
        ({"weight": 2}, "Extra inputs are not permitted"),
    ],
)
def test_a_row_that_does_not_hang_together_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    rows = [{**ROW, "kind": kind} for kind in KINDS]
    CaptionVocabulary.model_validate({"rows": rows})
    path = tmp_path / "words.yaml"
    path.write_text(json.dumps({"rows": [{**rows[0], **change}, *rows]}))
    with pytest.raises(WrongUse, match=r"words\.yaml: not a vocabulary") as caught:
        load_captions(path)
    assert message in str(caught.value)


def test_a_vocabulary_has_rows_of_every_kind(tmp_path: Path) -> None:
    (tmp_path / "words.yaml").write_text(json.dumps({"rows": [ROW]}))
    with pytest.raises(WrongUse, match="no row of kind scene, attribute"):
        load_captions(tmp_path / "words.yaml")
    with pytest.raises(WrongUse, match="correct the file"):
        load_captions(tmp_path / "nowhere.yaml")
