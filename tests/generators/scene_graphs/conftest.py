"""Captions written for the tests: every kind of relation that the rules know, and what is odd about real ones."""

from itertools import product
from pathlib import Path

import pytest

from twinset.generators.scene_graphs.relations import SceneGraphParser, parser_of
from twinset.models.spacy_pipelines import find_pipeline

SCENES = [
    "{a} is holding {b} in front of {c}",
    "{a} and {b} on top of {c}",
    "{a} carried by {b} next to {c} .",
    "{a}, standing on {b} with {c}",
    "there is {a} under {b} behind {c}!",
]
THINGS = ["a young woman", "two brown dogs", "the red fire truck", "Peter", "it", "a cup of tea", "his old guitar"]
ODD = [
    "dogs",
    "   ",
    "MAN RIDING A HORSE ON THE BEACH",
    "un café près de la tour 红色 🎸",
    "a man\u2028on a horse",
    "photo of <PERSON> & friends at #party :-) http://example.org/a?b=c",
    "The piano is played by a woman and a man in the room. A cat sleeps on the sofa.",
    "a dog " * 80,
    "....",
    "man with dog in park near lake by road at night on friday",
]


@pytest.fixture(scope="session")
def own_captions() -> list[str]:
    """1,115 captions."""
    scenes = [
        scene.format(a=a, b=b, c=c)
        for scene, a, b, c in product(SCENES, THINGS, THINGS, THINGS)
        if len({a, b, c}) == 3 or a == b == "Peter"
    ]
    return [*ODD, *scenes]


@pytest.fixture(scope="session")
def own_tsv(own_captions: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The captions that are not blank as a TSV of caption and URL, three captions an image."""
    path = tmp_path_factory.mktemp("captions") / "captions.tsv"
    lines = [f"{caption}\thttp://example.org/{n // 3}.jpg\n" for n, caption in enumerate(own_captions)]
    path.write_text("".join(lines), "utf-8")
    return path


@pytest.fixture(scope="session")
def small_parser() -> SceneGraphParser:
    """The parser that all parsing in this process uses: it takes seconds to load."""
    return parser_of(find_pipeline())
