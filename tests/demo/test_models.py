"""The small models that the demo brings: found by their names, and with words that they know."""

import pytest

from twinset.generators.edited_pairs.vocabulary import load_captions, vocabulary_file
from twinset.models.files import ModelFolder, local_folder
from twinset_demo.models import SMALL, SMALL_CLIP


@pytest.mark.parametrize(("name", "model"), [("small", SMALL), ("small-clip", SMALL_CLIP)])
def test_a_model_is_found_by_its_name(name: str, model: ModelFolder) -> None:
    folder = local_folder(name, "")
    assert (folder / "README.md").is_file() and folder == model.folder


def test_the_small_model_knows_all_words_of_its_vocabulary() -> None:
    known = set((SMALL.folder / "tokenizer/tokenizer.json").read_text("utf-8").replace('"', " ").split())
    rows = load_captions(vocabulary_file("small-world")).rows
    words = {word for row in rows for phrases in row.words.values() for phrase in phrases for word in phrase.split()}
    assert len(words) > 30
    assert {f"{word}</w>" for word in words} <= known
