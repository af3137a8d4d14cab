"""What counting words accepts, and the scene graph does not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.models.language_models.chat_server import Body, Reply, asked, completion, serving
from twinset.generators.contract import check_source
from twinset.generators.negative_captions.changes import problem
from twinset.generators.negative_captions.graph_changes import graph_of, things_changed
from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.negative_captions.source import NegativeCaptions
from twinset.generators.scene_graphs.relations import SceneGraphParser, parser_of
from twinset.models.spacy_pipelines import find_pipeline
from twinset.shards.contracts import Context
from twinset.shards.kinds.samples import Rejected


@pytest.fixture(scope="module")
def parser() -> SceneGraphParser:
    return parser_of(find_pipeline())


ONE = [
    ("replace_obj", "A black dog sleeps on a bench.", "A black cat sleeps on a bench."),
    ("replace_obj", "A dog sleeps on a bench.", "A small cat sleeps on a bench."),
    ("replace_obj", "Two slices of pizza are on a plate.", "Two cheeseburgers are on a plate."),
    ("replace_obj", "People are sitting in chairs.", "People are sitting on couches."),
    ("replace_att", "A man sits on a wooden chair.", "A man sits on a metal chair."),
    ("replace_rel", "A man is riding a horse.", "A man is feeding a horse."),
    ("replace_rel", "A man is sitting on a horse.", "A man is standing next to a horse."),
    ("add_obj", "A man rides a horse.", "A man with an umbrella rides a horse."),
    ("add_obj", "A door and a chair are in a room.", "A door, a picture on the wall and a chair are in a room."),
    ("add_att", "A man rides a horse.", "A tall man rides a horse."),
    ("swap_att", "A black dog chases a white cat.", "A white dog chases a black cat."),
]
TWO = [
    ("replace_obj", "A black dog sleeps on a bench.", "A white cat sleeps on a bench."),
    ("replace_obj", "Some black cattle are in a field.", "Some brown horses are in a field."),
    ("replace_obj", "People walking on sand at noon.", "Birds flying over sand at noon."),
    ("replace_att", "A man sits on a red chair.", "A man sits on a blue table."),
    ("replace_rel", "A plane is sitting on runways.", "A plane is soaring above clouds."),
    ("add_obj", "A man rides a horse.", "A man with an umbrella and a dog rides a horse."),
]


@pytest.mark.parametrize(("kind", "caption", "negative"), [*ONE, *TWO])
def test_one_thing_may_change_and_not_two(parser: SceneGraphParser, kind: str, caption: str, negative: str) -> None:
    first, second = (graph_of(*one) for one in parser.graphs([caption, negative]))
    assert problem(KINDS[kind].type, caption, negative) == "", "counting words accepts it"
    assert (things_changed(KINDS[kind], first, second) > 1) == ((kind, caption, negative) in TWO)


def test_answers_are_parsed_where_the_recipe_asks_for_it(tmp_path: Path) -> None:
    def changed(body: Body, number: int) -> Reply:
        return completion(json.dumps({"negative_caption": asked(body).replace("black dog", "white cat")}))

    (tmp_path / "captions.jsonl").write_text(json.dumps({"caption_id": "0", "image_id": "0", "caption": TWO[0][1]}))
    with serving(changed) as server:
        engine = {"kind": "openai", "model": "m", "base_url": server.url, "answers": str(tmp_path / "answers")}
        raw: dict[str, Any] = {"kind": "negative-captions", "captions": str(tmp_path / "captions.jsonl")}
        raw |= {"engine": engine, "kinds": ["replace_obj"]}
        without, source = (NegativeCaptions.model_validate({**raw, "graph_check": one}) for one in (False, True))
        check_source(source, Context("negatives"), make=1)
        made = {}
        for one in (without, source):
            generator = one.open(Context("negatives"))
            made[one.graph_check] = next(iter(generator.make(list(generator.plan()))))
    assert made[True] == Rejected(made[True].key, "two-things-changed", TWO[0][2]) and made[False] != made[True]
    checked, unchecked = source.open(Context("n")), without.open(Context("n"))
    assert {"pipeline", "prompts"} == {*checked.weights()} > {*unchecked.weights()}
    assert (checked.isolation, checked.device(), unchecked.device()) == ("process", "cpu", None)
    assert "graph_check" in without.incidental and not {"graph_check", "pipeline"} <= {*source.incidental}


def test_rules_are_not_checked_twice(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="graph_check is for language models"):
        NegativeCaptions(kind="negative-captions", captions=(tmp_path,), graph_check=True)
