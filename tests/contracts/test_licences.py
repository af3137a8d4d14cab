"""Names of licences, and the terms of what shows several works."""

import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import SPDX, allowed, hub_name, licence_named, listed_licence, page_of
from twinset.contracts.licences.terms import Terms, together
from twinset.generators.negative_images import NegativeImages
from twinset.generators.text_pairs import TextPairs

ADA = Terms("CC-BY-2.0", "Ada", "https://a.example/1")
BOB = Terms("CC-BY-SA-2.0", "Bob", "https://b.example/2")


@pytest.mark.parametrize(
    ("written", "named", "hub"),
    [
        ("cc by 4.0", "CC-BY-4.0", "cc-by-4.0"),
        ("Creative Commons Attribution-NonCommercial 2.0 Generic", "CC-BY-NC-2.0", "cc-by-nc-2.0"),
        ("http://creativecommons.org/licenses/by-nc-nd/2.0/", "CC-BY-NC-ND-2.0", "other"),
        ("https://creativecommons.org/publicdomain/zero/1.0/deed.en", "CC0-1.0", "cc0-1.0"),
        ("https://spdx.org/licenses/ODbL-1.0.html", "ODbL-1.0", "odbl"),
        ("openrail++", "openrail++", "openrail++"),
        ("MIT License", "MIT", "mit"),
        ("unlicense", "Unlicense", "unlicense"),
        ("MIT AND other:  my  terms AND apache-2.0", "Apache-2.0 AND MIT AND other: my terms", "other"),
    ],
)
def test_licences_have_one_name_however_they_are_written(written: str, named: str, hub: str) -> None:
    assert licence_named(written) == named == licence_named(named)
    assert hub_name(named) == hub


def test_what_no_list_knows_is_refused_with_those_that_are_near() -> None:
    with pytest.raises(
        ValueError, match=r"'CC-BY-5\.0' is not .*did you mean CC-BY-4\.0, .*write 'other: NAME OR URL'"
    ):
        licence_named("CC-BY-5.0")
    with pytest.raises(ValueError, match="'other:' is not the name or URL"):
        licence_named("other: ")
    assert listed_licence("Attribution License", "http://creativecommons.org/licenses/by/2.0/") == "CC-BY-2.0"
    assert listed_licence("Flickr Commons", "http://flickr.com/x") == "other: Flickr Commons (http://flickr.com/x)"
    assert listed_licence("CC-BY-NC-4.0", "") == listed_licence("CC-BY-NC-4.0", " ") == "CC-BY-NC-4.0"
    assert listed_licence("", "") == "" and listed_licence("", "http://x.example") == "other: (http://x.example)"
    assert licence_named(listed_licence("Rock AND Roll", "")) == "other: Rock and Roll"
    with pytest.raises(ValueError, match="'UN' is not the name or URL"):
        licence_named("UN")
    assert page_of("MIT") == "https://spdx.org/licenses/MIT" and "MIT" in SPDX
    assert page_of("other: http://x.example") == "http://x.example"


def test_what_shows_several_works_is_under_the_licences_of_all() -> None:
    both = together([ADA, Terms(), BOB, ADA])
    assert both.licence == "CC-BY-2.0 AND CC-BY-SA-2.0"
    assert both.credit == "Ada (CC-BY-2.0); Bob (CC-BY-SA-2.0)"
    assert both.source_url == "https://a.example/1 https://b.example/2"
    assert together([ADA, ADA]) == ADA and Terms.unpacked(both.packed) == both
    assert together([ADA, ADA._replace(credit="Eve")]).credit == "Ada; Eve"
    drawn = together([both, Terms("openrail++")])
    assert (drawn.licence, drawn.credit) == ("CC-BY-2.0 AND CC-BY-SA-2.0 AND openrail++", both.credit)
    assert allowed(ADA.licence, frozenset({"CC-BY-2.0"})) and not allowed(both.licence, frozenset({"CC-BY-2.0"}))


def test_settings_fill_in_what_records_do_not_say_and_are_added_to_earlier_stages() -> None:
    source = TextPairs(kind="text-pairs", negatives="n", licence="cc by 4.0", credit="Cap\nTion")
    assert source.terms == Terms("CC-BY-4.0", "Cap Tion")
    assert source.settled(("s", 1), Terms("MIT"), (), True) == Terms("MIT", "Cap Tion")
    assert source.settled(("s", 1), None, [ADA], True).licence == "CC-BY-2.0 AND CC-BY-4.0"
    silent = TextPairs(kind="text-pairs", negatives="n")
    assert silent.settled(("s", 1), None, [ADA], True) == ADA and silent.settled(("s",), None, (), False) == Terms()
    with pytest.raises(WrongUse, match=r"s: nothing states the licence of \[1\]; set source\.licence"):
        silent.settled(("s", 1), None, [Terms()], True)


def test_nothing_is_drawn_from_what_allows_no_derivatives_unless_allowed() -> None:
    settings = {
        "kind": "negative-images",
        "negatives": "p",
        "engine": {"kind": "diffusion", "model": "/m", "licence": "MIT"},
    }
    shown = [Terms("CC-BY-ND-2.0", "Ada", "https://a.example/1")]
    with pytest.raises(WrongUse, match=r"s: \['a'\] would change what is licensed CC-BY-ND-2\.0 AND MIT, .*a\.exam"):
        NegativeImages.model_validate(settings).settled(("s", "a"), None, shown, True)
    free = NegativeImages.model_validate({**settings, "allow_no_derivatives": True})
    assert free.settled(("s", "a"), None, shown, True).licence == "CC-BY-ND-2.0 AND MIT"


@pytest.mark.parametrize("url", ["javascript://%0aalert(1)", "file:///etc/passwd", "https://a.example/\x1b[2J", "x"])
def test_what_a_page_would_run_or_shows_this_machine_is_no_source_url(url: str) -> None:
    assert Terms.named("CC0-1.0", "Ada", url) == "unknown-source-url"


def test_a_credit_is_one_line_of_text() -> None:
    found = Terms.named("CC0-1.0", "Ada\x1b[2J\r\n  Lovelace\x00", "https://a.example/1")
    assert isinstance(found, Terms) and found.credit == "Ada[2J Lovelace"
    assert Terms.named("CC0-1.0", "A" * 2001, "") == "unknown-credit"
