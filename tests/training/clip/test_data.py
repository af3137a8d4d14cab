from pathlib import Path

from tests.training.clip.conftest import Settings
from twinset.training.clip.data import open_data


def test_twins_are_two_examples_or_the_first_alone(settings: Settings, tmp_path: Path) -> None:
    both, first = (open_data(settings(), twins).training for twins in ("both", "first"))
    assert len(both) == 2 * len(first) > 0
    texts = {both[place].texts["text"] for place in range(len(both))}
    alone = [first[place].texts["text"] for place in range(len(first))]
    assert {*alone} <= texts


def test_no_answer_of_a_batch_is_among_its_wrong_answers(settings: Settings) -> None:
    chosen = settings(objective="negative-pairs")
    examples = open_data(chosen, chosen.twins).training
    read = [examples[place] for place in range(len(examples))]
    images = [one.images[role] for one in read for role in ("image", "negative_image")]
    assert len(read) == 8 and len({(place.tar, place.offset) for place in images}) == len(images) == 16
