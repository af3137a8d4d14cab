"""How recipes are written: ``--set``, ``same_as``, stages that read stages; and Markdown of strangers on cards."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tests.contracts.conftest import refused
from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.markdown import Markdown, cell, code, fence, plain, short, statements, table
from twinset.contracts.recipe import Recipe, content_of, load_recipe

HOSTILE = [
    "[click](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "[click][1]",
    "[1]: https://evil.example",
    "<https://evil.example>",
    "<a href='https://evil.example'>click</a>",
    "<img src=x onerror=alert(1)>",
    "<!-- x -->",
    "&lt;script&gt; &#60;b&#62; &amp;",
    "https://evil.example/a?b=c&d",
    "HTTP://EVIL.EXAMPLE",
    "www.evil.example and WWW.evil.example",
    "ask me@evil.example or @someone",
    "see #12 and other/project#3",
    "https\\://evil.example",
    "`https://evil.example` ``x`` `",
    "http://a|b\\|c|`",
    "one\r\n\r\n# two",
    "one\r[click](x)\u2028three\x85four\x00",
    "a | b \\| c \\",
    "**bold** _it_ __b__ ~~gone~~ `code` $x^2$",
    "# heading",
    "> quoted",
    "- item",
    "+ item",
    "1. item",
    "12) item",
    "===",
    "---",
    "***",
    "```",
    "~~~",
    "    code",
    "|---|",
    "\\",
    "\\[click](x)",
]
MARKS = {"link_open", "image", "html_inline", "html_block", "em_open", "strong_open", "s_open", "heading_open", "hr"}
BLOCKS = {"fence", "code_block", "blockquote_open", "bullet_list_open", "ordered_list_open"}
LINKED = re.compile(r"https?://|www\.|\w@\w|@\w|#\d", re.IGNORECASE)


class Shown(HTMLParser):
    """What a browser shows: text within code, and outside of it; cells of a table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.outside, self.all, self.code, self.cells = "", "", 0, 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.code += tag == "code"
        self.cells += tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self.code -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.all += data
        self.outside += "" if self.code else data


def shown(source: str) -> Shown:
    """Parsed as GitHub does. Addresses that it would link are looked for in the text: the parser links none."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = parser.parse(source)
    met = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or []}
    assert not met & (MARKS | BLOCKS), source
    found = Shown(parser.render(source))
    assert not LINKED.search(found.outside), source
    return found


def one_line(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_others_is_shown_as_it_stands(text: str) -> None:
    assert one_line(shown(plain(text)).all) == one_line(text)
    assert one_line(shown(f"before {plain(text)} after [1]").all) == f"before {one_line(text)} after [1]"
    row = shown(table([text, "b"], [[text, "1"], ["a", "2"]]))
    assert row.cells == 6
    assert one_line(row.all) == one_line(f"{text} b {text} 1 a 2")


def test_no_text_turns_round_what_stands_behind_it() -> None:
    assert plain("a\u202egnp.exe\u202c, \u2066b\u2069") == "agnp.exe, b"


def test_ordinary_captions_stay_readable() -> None:
    for caption in ("A man's dog (left) isn't running - it sits, at 5:30!", "Ein Hund; 50 % größer", "a/b #x @ home"):
        assert plain(caption) == cell(caption) == caption
    assert cell(Markdown("**a**")) == "**a**"
    assert cell(short("x" * 200)) == "x" * 120 + "…"


def test_a_block_of_code_is_not_ended_by_what_it_holds() -> None:
    assert fence("a") == "```" and fence("a ```` b ``") == "`````"


def test_a_name_as_code_ends_neither_itself_nor_its_cell() -> None:
    assert code("wrong-count") == "`wrong-count`" and code("a|b`c\n| d <i>") == "`a b c d <i>`"


def test_statements_are_what_list_items_say_in_bold_first() -> None:
    text = "* **One:\n  two**, and more **three**.\n* four\n\nFive **six**\n* **Seven.** Eight\n"
    assert statements(text) == "One: two. Seven." and statements("") == ""


def test_overrides_change_any_key(recipe: Path) -> None:
    loaded = load_recipe(
        str(recipe),
        [
            "seed=7",
            "description=a=b = c",
            "subsets.eq-ag.source.skip=2",
            "subsets.eq-ag.encoding.format=png",
            "subsets.eq-youcook2.filters=[{kind: faces}]",
            "subsets.eq-youcook2.filters.0.model=cnn",
        ],
    )
    assert (loaded.seed, loaded.description, loaded.subsets["eq-ag"].encoding.format) == (7, "a=b = c", "png")
    assert loaded.subsets["eq-ag"].source.model_dump()["skip"] == 2
    (faces,) = loaded.subsets["eq-youcook2"].filters
    assert faces.model_dump() == {"kind": "faces", "model": "cnn"}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("seed", "write KEY.PATH=VALUE"),
        ("=1", "write KEY.PATH=VALUE"),
        ("", "write KEY.PATH=VALUE"),
        ("subsets..shard_size=1", "write KEY.PATH=VALUE"),
        (".seed=1", "write KEY.PATH=VALUE"),
        ("subsets.eq-ag.source.media=", "write KEY.PATH=VALUE"),
        ("seed=[1", "'[1' is not a YAML value (line 1, column 3: while parsing a flow sequence, expected ',' or ']'"),
        ("name=2026-99-99", "is not a YAML value"),
        ("name=a\x07b", "is not a YAML value (unacceptable character #x0007: special characters are not allowed in"),
        ("seed=!!python/object/apply:os.getcwd []", "is not a YAML value"),
        ("name.part=1", "holds a value, not keys"),
        ("name.part.more=1", "there is no 'part' under name"),
        ("subsets.eq-agg.shard_size=1", "no subset 'eq-agg'; the recipe has: eq-ag, eq-youcook2"),
        ("subsets.eq-youcook2.filters.7.kind=faces", "there is no '7' under subsets.eq-youcook2.filters"),
        ("subsets.eq-youcook2.filters.-1={kind: faces}", "there is no '-1' under subsets.eq-youcook2.filters"),
        ("subsets.eq-youcook2.filters.first.kind=faces", "there is no 'first' under subsets.eq-youcook2.filters"),
        ("subsets=5", "subsets: "),
        ("subsets=[eq-ag]", "subsets: "),
        ("subsets={}", "subsets: "),
        ("subsets={Eq_AG: {}}", "subset name 'Eq_AG' must be lowercase"),
        ("subsets.eq-ag=", "subsets.eq-ag: "),
        ("subsets.eq-ag.source=youcook2", "subsets.eq-ag.source: "),
        ("subsets.eq-ag.source.kind=coco", "--set subsets.eq-ag.source.kind: there is no source 'coco' here; install"),
        ("subsets.eq-ag.source.kind=gebcc", "source.kind: there is no source 'gebcc' here; did you mean 'gebc'?"),
        ("subsets.eq-youcook2.filters.0.kind=face", "there is no filter 'face' here; did you mean 'faces'?"),
        ("subsets.eq-ag.source.kind=5", "--set subsets.eq-ag.source.kind: a kind is a name"),
        ("seed=-1", "seed: "),
        ("seed=zero", "seed: "),
        (f"subsets.eq-ag.count={10**25}", "subsets.eq-ag.count: "),
        (f"subsets.eq-ag.shard_size={10**25}", "subsets.eq-ag.shard_size: "),
        ("max_missing=.nan", "max_missing: "),
        ("max_missing=2", "max_missing: "),
        ("sed=1", "--set sed: unknown key; did you mean 'seed'?"),
        ("zzz.part=1", "--set zzz: unknown key"),
        ("subsets.eq-ag.source.skip=-1", "--set subsets.eq-ag.source.skip: "),
        ("subsets.eq-youcook2.filters.².kind=faces", "there is no '²' under subsets.eq-youcook2.filters"),
        (f"subsets.eq-youcook2.filters.{'1' * 5000}=1", "under subsets.eq-youcook2.filters"),
        ("description=[&a x, *a]", "found an alias"),
        ("description={a: 1, a: 2}", "found the key 'a' twice"),
        ('description="\\ud800"', "half a surrogate pair"),
        ("seed=1:30", "found a number in base 60; put quotes round it"),
        ("subsets.eq-ag.source.media=/videos/\udcff", "is not a YAML value"),
        ("subsets.eq-ag.source.media=miniature:../..", "--set subsets.eq-ag.source.media: "),
        ("subsets.eq-ag.source.media=miniature:/etc", "leaves the folder of miniature"),
        ("subsets={" + "a" * 61 + ": {}}", "at most 60 characters"),
    ],
)
def test_odd_overrides_are_refused_with_what_to_write(recipe: Path, setting: str, message: str) -> None:
    assert message in refused(recipe, setting)


def test_a_share_is_a_number_where_a_file_may_stand_too(tmp_path: Path) -> None:
    recipe = tmp_path / "own.yaml"
    source = "{kind: image-captions, captions: c.csv, images: i, licence: MIT}"
    recipe.write_text(f"name: own\nsubsets: {{own: {{source: {source}}}}}\n")
    for given, read in (("0.8", 0.8), ("train.txt", Path("train.txt").absolute())):
        assert load_recipe(str(recipe), [f"subsets.own.source.train={given}"])["own"].source.train == read


def test_only_what_set_changed_is_blamed_on_it(recipe: Path) -> None:
    recipe.write_text(recipe.read_text().replace("shard_size: 16", "shard_size: x"))
    first, second = refused(recipe, "subsets.eq-youcook2.pool=x", "subsets.eq-ag.source.media=/videos").splitlines()
    assert first.startswith(f"{recipe}: subsets.eq-youcook2.shard_size: ")
    assert second.startswith("--set subsets.eq-youcook2.pool: ")


def test_a_setting_can_be_the_same_as_another_one_also_where_that_is_changed(tmp_path: Path) -> None:
    photos = "subsets.bivlc.source.photos"

    def of(*settings: str) -> set[str]:
        recipe = load_recipe("bivlc", settings)
        return {str(recipe[name].source.photos) for name in ("bivlc", "unambiguous")}  # type: ignore[attr-defined]

    assert of(f"{photos}={tmp_path}") == {str(tmp_path)}
    assert of(f"{photos}={tmp_path}", "stages.unambiguous.source.photos=/other") == {str(tmp_path), "/other"}
    for setting, words in (
        (f"{photos}={{same_as: stages.unambiguous.source.photos}}", "leads back to itself"),
        (f"{photos}={{same_as: subsets.bivlc.source.photo}}", "which the recipe does not set; correct the key path"),
        (f"{photos}={{same_as: subsets.bivlc.source}}", "names one setting"),
        (f"{photos}=[{{same_as: {photos}}}]", "leads back to itself"),
        (f"{photos}={{same_as: stages.unambiguous.source.photos.same_as}}", "which the recipe does not set"),
    ):
        with pytest.raises(WrongUse, match=words):
            of(setting)


def test_what_a_reference_names_can_stand_in_a_list_or_be_one_with_references() -> None:
    recipe = load_recipe(
        "eqben",
        [
            "subsets.eq-ag.filters=[{kind: true-of-both, model: {same_as: subsets.eq-gebc.filters.0.model}}]",
            "subsets.eq-gebc.filters=[{kind: true-of-both, model: small-clip}]",
            "subsets.eq-youcook2.filters={same_as: subsets.eq-ag.filters}",
        ],
    )
    for name in ("eq-ag", "eq-youcook2"):
        (only,) = recipe[name].filters
        assert only.model_dump()["model"] == "small-clip"


GRAPHS = {"source": {"kind": "scene-graphs", "captions": "captions.json"}, "shard_size": 100}
TRIPLETS = {
    "source": {"kind": "genecis-triplets", "graphs": "graphs", "concreteness": "ratings.txt", "licence": "MIT"},
    "count": 10,
}
TEMPLATES = {"source": {"kind": "genecis-objects", "task": "focus", "annotations": "a.json", "media": "m"}}


def load(folder: Path, stages: dict[str, Any], subsets: dict[str, Any], *settings: str) -> Recipe:
    (folder / "r.yaml").write_text(json.dumps({"name": "r", "stages": stages, "subsets": subsets}))
    return load_recipe(str(folder / "r.yaml"), settings)


def test_each_stage_comes_after_those_that_it_reads(tmp_path: Path) -> None:
    recipe = load(tmp_path, {"graphs": GRAPHS}, {"b": TRIPLETS, "a": TEMPLATES})
    assert list(recipe.all).index("graphs") < list(recipe.all).index("b")
    assert (recipe.reads("b"), recipe.reads("a"), recipe.reads("graphs")) == (["graphs"], [], [])
    assert (recipe.home("graphs"), recipe.home("b")) == ("_stages/graphs", "b")
    assert (recipe.key("graphs"), recipe.key("b")) == ("stages.graphs", "subsets.b")


def test_only_what_the_chosen_subsets_need_is_built(tmp_path: Path) -> None:
    recipe = load(tmp_path, {"graphs": GRAPHS}, {"b": TRIPLETS, "a": TEMPLATES})
    assert list(recipe.only(["a"]).all) == ["a"]
    assert sorted(recipe.only(["b"]).all) == ["b", "graphs"]
    with pytest.raises(WrongUse, match="recipe r has no subset 'none'; name one of b, a, graphs"):
        recipe.only(["none"])
    assert list(recipe.only(["graphs"]).all) == ["graphs"]


def test_settings_of_stages_can_be_overridden_and_paths_count_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    settings = ["stages.graphs.source.captions=[a.json, b.json]", "stages.graphs.source.pipeline=./pipeline"]
    source: Any = load(tmp_path, {"graphs": GRAPHS}, {"b": TRIPLETS}, *settings)["graphs"].source
    assert source.captions == (tmp_path / "here/a.json", tmp_path / "here/b.json")
    assert source.pipeline == str(tmp_path / "here/pipeline") and source.locations == ("captions", "pipeline")
    source = load(tmp_path, {"graphs": GRAPHS}, {"b": TRIPLETS})["graphs"].source
    assert source.captions == (tmp_path / "captions.json",) and source.locations == ("captions",)


def test_a_finished_stage_is_read_by_its_folder_or_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given, read in (
        ("out/_stages/graphs", str(tmp_path / "out/_stages/graphs")),
        ("/out/_stages/graphs", "/out/_stages/graphs"),
        ("s3://bucket/out/_stages/graphs", "s3://bucket/out/_stages/graphs"),
    ):
        recipe = load(tmp_path, {}, {"b": TRIPLETS}, f"subsets.b.source.graphs={given}")
        assert recipe["b"].source.reads == (read,) and recipe.reads("b") == []


def test_which_stage_is_read_is_not_content_but_its_settings_are(tmp_path: Path) -> None:
    recipe = load(tmp_path, {"graphs": GRAPHS, "others": GRAPHS}, {"b": TRIPLETS})
    other = load(tmp_path, {"graphs": GRAPHS, "others": GRAPHS}, {"b": TRIPLETS}, "subsets.b.source.graphs=others")
    assert digest(content_of(recipe["b"], 0)) == digest(content_of(other["b"], 0))
    pipeline = load(tmp_path, {"graphs": GRAPHS}, {"b": TRIPLETS}, "stages.graphs.source.pipeline=en_core_web_sm")
    assert content_of(recipe["graphs"], 0) != content_of(pipeline["graphs"], 0)


@pytest.mark.parametrize(
    ("stages", "settings", "problem"),
    [
        ({}, [], "b reads 'graphs', which is not among the recipe's stages (none); correct it, or write the folder"),
        ({"b": GRAPHS, "graphs": GRAPHS}, [], "b is a stage and a subset; rename one"),
        (
            {"graphs": {**TRIPLETS, "source": {**TRIPLETS["source"], "graphs": "other"}}, "other": TRIPLETS},
            [],
            "circle",
        ),
        (
            {"graphs": {**GRAPHS, "filters": [{"kind": "blank"}]}},
            [],
            "filter blank judges images, and a table has none",
        ),
        ({"graphs": GRAPHS}, ["subsets.b.filters=[{kind: near-identical}]"], "judges pairs, and these are triplets"),
        ({"graphs": GRAPHS}, ["subsets.b.count=null"], "set count, the number of triplets to sample"),
        ({"graphs": GRAPHS}, ["stages.grafs.shard_size=1"], "no stage 'grafs'; the recipe has: graphs"),
        ({"graphs": GRAPHS}, ["stages.graphs.source.captions="], "write KEY.PATH=VALUE"),
        ({"graphs": GRAPHS}, ["stages.graphs.source.captions=[]"], "stages.graphs.source.captions: "),
        ({"graphs": GRAPHS}, ["stages={Graphs: {}}"], "subset name 'Graphs' must be lowercase"),
    ],
)
def test_stages_that_do_not_fit_are_refused(
    tmp_path: Path, stages: dict[str, Any], settings: list[str], problem: str
) -> None:
    with pytest.raises(WrongUse, match=re.escape(problem)):
        load(tmp_path, stages, {"b": TRIPLETS}, *settings)
