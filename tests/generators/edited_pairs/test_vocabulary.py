"""The captions of EQ-SD: those of Figure 15, and of one's own files."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.errors import WrongUse
from twinset.generators.edited_pairs.vocabulary import KINDS, CaptionVocabulary, load_captions, vocabulary_file


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
