"""Keys and seeds, licences and terms, receipts and stage records, kinds of installed packages."""

import base64
import hashlib
import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from twinset.cards.terms import hub_name
from twinset.contracts.canonical import canonical_json, digest, generator_for, sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import licence_named
from twinset.contracts.licences.terms import Terms, together
from twinset.contracts.parts import FILTERS
from twinset.contracts.receipt import IndexRecord, Receipt, parse_receipt, parsed
from twinset.contracts.recipe import load_recipe
from twinset.contracts.source import SOURCES, SourceSettings
from twinset.contracts.stage import ANY_RUNTIME, Facts, Stage, parse_stage, versions_of
from twinset.generators.licences import listed_licence, terms_named
from twinset.generators.text_pairs import TextPairs

STREAM = (910252455, 473475284, 538015296, 75476677)


def test_digests_and_keys_never_change() -> None:
    assert digest({"a": 1}) == hashlib.blake2b(b'{"a":1}', digest_size=16).hexdigest()
    hashed = hashlib.blake2b(b'["eq-ag","001YG.mp4",10,20]', digest_size=10).digest()
    assert sample_key("eq-ag", "001YG.mp4", 10, 20) == "eq-ag-" + base64.b32encode(hashed).decode().lower()
    assert sample_key("eq-ag", "001YG.mp4", 10, 20) == "eq-ag-gvjocjicdiz3chkz"


def test_keys_of_hostile_identities_suit_every_reader_and_differ() -> None:
    identities = ["-xQ_.mp4", "a/b", "", " ", "é", "\ud800", "A", "a", "a.b", "1"]
    keys = [sample_key("eq-x", identity) for identity in (*identities, 1, 1.5)]
    assert all(re.fullmatch(r"eq-x-[a-z2-7]{16}", key) for key in keys)
    assert len(set(keys)) == len(keys)
    assert sample_key("eq-x", "a", "b") != sample_key("eq-x", "ab") != sample_key("eq-y", "ab")


def test_a_candidates_random_stream_depends_on_seed_subset_and_key_alone() -> None:
    sources = [(0, "eq-x", "k"), (0, "eq-x", "k"), (1, "eq-x", "k"), (0, "eq-y", "k"), (0, "eq-x", "l")]
    streams = [tuple(generator_for(*source).integers(0, 1 << 30, 4).tolist()) for source in sources]
    assert streams[0] == streams[1] == STREAM and len({*streams}) == 4


def test_the_recipe_has_the_papers_sizes() -> None:
    recipe = load_recipe("genecis")
    sizes = {"focus-attribute": 2000, "change-attribute": 2112, "focus-object": 1960, "change-object": 1960}
    assert {name: subset.count for name, subset in recipe.subsets.items()} == {"triplets": 1_600_000, **sizes}
    assert {subset.split for name, subset in recipe.subsets.items() if name != "triplets"} == {"test"}
    assert recipe.subsets["triplets"].split == "train"
    assert all(not subset.filters for subset in recipe.subsets.values())
    assert recipe.stages["scene-graphs"].shard_size == 2048


ADA = Terms("CC-BY-2.0", "Ada", "https://a.example/1")
BOB = Terms("CC-BY-SA-2.0", "Bob", "https://b.example/2")


@pytest.mark.parametrize(
    ("written", "named", "hub"),
    [
        ("cc by 4.0", "CC-BY-4.0", "cc-by-4.0"),
        ("http://creativecommons.org/licenses/by-nc-nd/2.0/", "CC-BY-NC-ND-2.0", "other"),
        ("https://creativecommons.org/publicdomain/zero/1.0/deed.en", "CC0-1.0", "cc0-1.0"),
        ("https://spdx.org/licenses/ODbL-1.0.html", "ODbL-1.0", "odbl"),
        ("openrail++", "openrail++", "openrail++"),
        ("MIT License", "MIT", "mit"),
        ("unlicense", "Unlicense", "unlicense"),
        ("GPL-3.0", "GPL-3.0-only", "gpl-3.0"),
        ("mpl 2.0", "MPL-2.0", "other"),
        ("MIT AND other:  my  terms AND apache-2.0", "Apache-2.0 AND MIT AND other: my terms", "other"),
    ],
)
def test_licences_have_one_name_however_they_are_written(written: str, named: str, hub: str) -> None:
    assert licence_named(written) == named == licence_named(named)
    assert hub_name(named) == hub


def test_what_no_list_knows_is_refused() -> None:
    for written in ("CC-BY-5.0", "other: ", "UN"):
        with pytest.raises(ValueError, match=f"{written.strip()!r} is not the name or URL of a known licence; write"):
            licence_named(written)
    assert listed_licence("Attribution License", "http://creativecommons.org/licenses/by/2.0/") == "CC-BY-2.0"
    assert listed_licence("Flickr Commons", "http://flickr.com/x") == "other: Flickr Commons (http://flickr.com/x)"
    assert listed_licence("", "") == "" and listed_licence("", "http://x.example") == "other: (http://x.example)"
    assert licence_named(listed_licence("Rock AND Roll", "")) == "other: Rock and Roll"


def test_what_shows_several_works_is_under_the_licences_of_all() -> None:
    joint = together([ADA, Terms(), BOB, ADA])
    assert joint.licence == "CC-BY-2.0 AND CC-BY-SA-2.0"
    assert joint.credit == "Ada (CC-BY-2.0); Bob (CC-BY-SA-2.0)"
    assert joint.source_url == "https://a.example/1 https://b.example/2"
    assert together([ADA, ADA]) == ADA
    assert together([ADA, ADA._replace(credit="Eve")]).credit == "Ada; Eve"
    drawn = together([joint, Terms("openrail++")])
    assert (drawn.licence, drawn.credit) == ("CC-BY-2.0 AND CC-BY-SA-2.0 AND openrail++", joint.credit)


def test_settings_fill_in_what_records_do_not_say_and_are_added_to_earlier_stages() -> None:
    source = TextPairs(kind="text-pairs", negatives="n", licence="cc by 4.0", credit="Cap\nTion")
    assert source.terms == Terms("CC-BY-4.0", "Cap Tion")
    assert source.settled(("s", 1), Terms("MIT"), (), True) == Terms("MIT", "Cap Tion")
    assert source.settled(("s", 1), None, [ADA], True).licence == "CC-BY-2.0 AND CC-BY-4.0"
    silent = TextPairs(kind="text-pairs", negatives="n")
    assert silent.settled(("s", 1), None, [ADA], True) == ADA and silent.settled(("s",), None, (), False) == Terms()
    with pytest.raises(WrongUse, match=r"s: nothing states the licence of \[1\]; set source\.licence"):
        silent.settled(("s", 1), None, [Terms()], True)


def test_a_credit_is_one_line_of_text_and_a_source_no_url_that_a_page_would_run() -> None:
    for url in ("javascript://%0aalert(1)", "file:///etc/passwd", "https://a.example/\x1b[2J", "x"):
        assert terms_named("CC0-1.0", "Ada", url) == "unknown-source-url"
    terms = terms_named("CC0-1.0", "Ada\x1b[2J\r\n  Lovelace\x00", "https://a.example/1")
    assert isinstance(terms, Terms) and terms.credit == "Ada[2J Lovelace"
    assert terms_named("CC0-1.0", "A" * 2001, "") == "unknown-credit"


COUNTS = {"planned": 5, "kept": 2, "rejected": {"face": 2, "broken-media": 1}}
RECEIPT: dict[str, Any] = {
    **{"shard": 3, "split": "test", "content": "c" * 32, "runtime": ANY_RUNTIME, "slice": "5" * 32, **COUNTS},
    **{"tar_sha256": "a" * 64, "tar_size": 10240, "rows_sha256": "b" * 64, "rows_size": 999},
    "missing": {"é -x": None, "half": 7},
}


FACTS = Facts(makes="pair", settings={}, inputs="", generator={}, filters=[], libraries={}).model_dump()
STAGE = Stage(name="eq-x", facts=FACTS, content=digest(FACTS), plan="", planned=5, shards=1, excluded={"unsaid": 2})


def test_stages_come_back_and_others_are_refused_with_a_remedy() -> None:
    assert parse_stage("here", STAGE.to_bytes()) == STAGE
    whole = json.loads(STAGE.to_bytes())
    wrong: list[Any] = [{"makes": None}, {"settings": {"x": float("nan")}}, {"filters": {}}, {"inputs": 1.5}]
    changed = [{**whole, "new": 1}, {**whole, "facts": {}}, *({**whole, "facts": {**FACTS, **fact}} for fact in wrong)]
    for content in (b"", b"\xff", b"[" * 100_000, *(json.dumps(record).encode() for record in changed)):
        with pytest.raises(WrongUse, match=r"^here: not a stage record of this version.*damaged.*new --out"):
            parse_stage("here", content)


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "", "a/b", "a\0", "x" * 5000])
def test_a_record_of_files_elsewhere_is_none(name: str) -> None:
    index = {"index.parquet": ("", 1)}
    record = {"content": "", "plan": "", "digest": "", "planned": 1, "kept": 1, "rows": 1}
    for files, sound in ((index, True), ({}, False), ({**index, name: ("", 1)}, False)):
        assert (parsed(IndexRecord, json.dumps({**record, "files": files}).encode()) is not None) == sound


def test_receipts_come_back_from_canonical_bytes() -> None:
    receipt = Receipt(**RECEIPT)
    content = receipt.to_bytes()
    assert parse_receipt(content) == receipt and content.endswith(b"}\n") and b" -x" in content
    assert Receipt(**dict(reversed(RECEIPT.items())), duplicates={}).to_bytes() == content
    for damaged in (b"", b"null", b"\xff", b"[" * 100_000, b"NaN", content[:-1]):
        assert parse_receipt(damaged) is None
    rejected = {"rejected": {"face": -2, "broken-media": 5}}
    for changes in ({"kept": 3}, {"kept": -1, "planned": 2}, rejected, {"content": "\ud800"}, {"kept": "2"}):
        assert parse_receipt(canonical_json(json.loads(content) | changes) + b"\n") is None, "no shard has it"


def test_versions_are_of_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert versions_of(["numpy", "no-such-package"]) == {"no-such-package": "absent", "numpy": version("numpy")}

    def on_a_server(name: str) -> str:
        return version({"opencv-python": "absent", "opencv-python-headless": "opencv-python"}.get(name, name))

    monkeypatch.setattr("twinset.contracts.stage.version", on_a_server)
    assert versions_of(["opencv-python"]) == {"opencv-python": version("opencv-python")}


MEDIA = "twinset.generators.image_files:MediaSource"


def test_kinds_of_installed_packages_are_found_and_replace_none_of_twinsets(bring: Any) -> None:
    bring("first", "twinset.sources", theirs=MEDIA, gebc="nothing:Here")
    assert issubclass(SOURCES.find("theirs"), SourceSettings) and SOURCES.distribution("theirs") == "first 1.0"
    assert {"theirs", "gebc", "image-pairs"} <= set(SOURCES.kinds()) and "theirs" not in FILTERS.kinds()
    assert SOURCES.find("gebc").__module__ == "twinset.generators.video.gebc" and SOURCES.distribution("gebc") == ""
    bring("second", "twinset.sources", theirs=MEDIA)
    with pytest.raises(WrongUse, match="source 'theirs' comes with first and with second; uninstall all but one"):
        SOURCES.find("theirs")


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("twinset.contracts.source:Place", r"source 'theirs' of lab 1\.0: .*Place.* is no SourceSettings"),
        ("exits_at_import:Source", r"source 'theirs' of lab 1\.0 cannot be imported: SystemExit: 0"),
    ],
)
def test_a_broken_package_is_named(bring: Any, tmp_path: Path, place: str, problem: str) -> None:
    (tmp_path / "exits_at_import.py").write_text("raise SystemExit(0)")
    bring("lab", "twinset.sources", theirs=place)
    with pytest.raises(WrongUse, match=problem):
        SOURCES.find("theirs")
