"""Relations written for the tests, ratings for their words, and real captions with the real ratings."""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.generators.finished_stage import finish
from twinset.contracts.licences.terms import TERMS
from twinset.generators.captions.tables import Caption, caption_source
from twinset.generators.scene_graphs.source import SceneGraphs
from twinset.generators.triplets.ratings import load_ratings, with_plurals
from twinset.generators.triplets.relations import Relations, load_relations

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
REAL_CAPTIONS = 2000

Said = tuple[str, str, str, str]  # image, subject, predicate, object
LEMMAS = {"hats": "hat", "glasses": "glass", "dogs": "dog", "men": "man"}
RATED = {
    "man": 4.8,
    "hat": 4.9,
    "glass": 4.9,
    "glasses": 4.0,
    "horse": 5.0,
    "idea": 1.6,
    "dog": 4.9,
    "ball": 5.0,
    "stick": 4.6,
    "crown": 4.7,
    "floor": 4.8,
    "king": 4.6,
    "tree": 5.0,
    "bird": 4.9,
    **dict.fromkeys(("chewing", "riding", "wearing"), 4.0),
}


def relations_of(said: Sequence[Said], others: Sequence[tuple[str, str]] = (), **columns: list[Any]) -> Relations:
    """The relations as a stage of scene graphs has them, each of a caption of its own.

    others: captions without relations, as photo and text. columns: in place of what a plain relation has.
    """
    image, subject, predicate, object_ = (list(column) for column in zip(*said, strict=True))
    lemmas = [[LEMMAS.get(word, word) for word in words] for words in (subject, object_)]
    count = len(said)
    table = {
        "caption_id": [str(number) for number in range(count)],
        "image_id": image,
        "caption": [" ".join(words) for _, *words in said],
        "image": [f"{name}.jpg" for name in image],
        "photo": image,
        "subject": subject,
        "predicate": predicate,
        "object": object_,
        "subject_lemma": lemmas[0],
        "object_lemma": lemmas[1],
        "predicate_lemma": predicate,
        "subject_pos": ["NOUN"] * count,
        "object_pos": ["NOUN"] * count,
        "subject_number": ["singular" if a == b else "plural" for a, b in zip(subject, lemmas[0], strict=True)],
        "subject_start": [0] * count,
        "verb": [""] * count,
        "confirmed": [None] * count,
        **dict.fromkeys(("negated", "backdrop", "contested", "stand_in", "plain"), [False] * count),
        **dict.fromkeys(TERMS, [""] * count),
        **columns,
    }
    silent = pl.DataFrame(others, {"photo": pl.String, "caption": pl.String}, orient="row")
    index = pl.DataFrame(table).with_columns(pl.col("confirmed").cast(pl.Boolean)).with_row_index("row")
    return Relations(index.lazy(), silent, count)


@pytest.fixture(scope="session")
def own_said() -> list[Said]:
    """Subjects of unlike numbers of images, words that are unrated or plurals, and pairs that cannot but be alike.

    A dog's stick is in one of the images of its ball. Nearly all that crowns are said of is in one image, so that the
    101st draw of a target is often as bad as those before.
    """
    said = [(f"m{n}", "man", "with", "hat") for n in range(4)]
    said += [(f"m{n}", "man", "wearing", "glasses") for n in (4, 5)]
    said += [(f"m{n}", "man", "on", "horse") for n in (0, 6, 7, 8)]
    said += [("m6", "man", "with", "idea"), ("m9", "man", "in", "thingummy"), ("m9", "man", "near", "horse")]
    said += [(f"d{n}", "dog", "with", "ball") for n in range(6)]
    said += [("d0", "dog", "chewing", "stick"), ("d0", "bird", "on", "stick"), ("d1", "bird", "on", "horse")]
    said += [("c0", "crown", "on", "floor")] * 40 + [(f"c{n}", "crown", "near", "floor") for n in (2, 3, 4)]
    said += [("c0", "crown", "with", "king")] * 40 + [("c1", "crown", "with", "king")]
    said += [(f"t{n}", "tree", "with", "bird") for n in range(8)] + [("t8", "tree", "near", "ball")] * 3
    said += [(f"x{n}", "tree", "behind", "man") for n in range(5)]
    said += [(f"f{n}", "king", "with", "crown") for n in range(9)]  # one object: no subject
    said += [(f"g{n}", "glass", "on", one) for n, one in enumerate(("floor", "tree", "ball", "horse"))]  # four images
    return said


@pytest.fixture(scope="session")
def own_ratings() -> dict[str, float]:
    """With plurals, for the published rules."""
    pytest.importorskip("inflect", reason="inflect makes the plurals: pip install 'twinset[text]'")
    return with_plurals(RATED)


@pytest.fixture(scope="session")
def real_ratings() -> dict[str, float]:
    path = SHARED / "concreteness" / "Concreteness_ratings_Brysbaert_et_al_BRM.txt"
    if not path.is_file():
        pytest.skip("the ratings of ../shared/data/concreteness are not here")
    return load_ratings(path)


@pytest.fixture(scope="session")
def real_relations(tmp_path_factory: pytest.TempPathFactory) -> Relations:
    """The relations of the first captions of Flickr8k."""
    path = SHARED / "captions" / "flickr8k_token.txt"
    if not path.is_file():
        pytest.skip("the captions of ../shared/data are not here")
    folder = tmp_path_factory.mktemp("real")
    captions = (one for one in caption_source(path).read() if isinstance(one, Caption))
    lines = [
        json.dumps({"id": one.caption_id, "image_id": one.image_id, "caption": one.caption, "image": one.image})
        for one in islice(captions, REAL_CAPTIONS)
    ]
    (folder / "captions.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    graphs = finish(SceneGraphs(kind="scene-graphs", captions=(folder / "captions.jsonl",)), folder)
    return load_relations(graphs, folder)
