"""What the card of triplets says of how they were mined: steps, the two sets of rules, and what was counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from manifests.markdown import plain, short, table

_STEPS = """1. A parser reads relations subject → predicate → object off every caption.
2. A subject that is seen in at least {min_images} images, with at least two objects, is sampled, the more often the
   more images it has; one of its relations is the *reference*.
3. The *target* is a relation of the same subject with another object, in another image{exception}.
4. The *condition* is predicate and object of the target, in the words of its caption.
5. Kept is what is concrete: the mean rating of {words} (1 to 5, in a file
   of ratings such as that of Brysbaert et al. 2014) must be above {threshold:g}.

Every triplet is sampled by its own number: asking for more keeps the first ones.
"""
_RULES = """
Two sets of rules exist, and `rules: {rules}` made these. `published` is what the authors' released code does. `strict`
is what their paper says, without what gets past that code: words are compared as lemmas; all must be rated, and no
rating is replaced by another word's; the paper's four words are averaged (section 6.2) rather than six; no caption of
the reference's or the distractor's image says what makes the target right.
"""

#: What the strict rules keep out, by its name in the record of mining.
_FAULTS = {
    "same_object": "reference and target have one object",
    "same_image": "reference and target are one image",
    "reference_shows_target": "captions of the reference's image already say the target's subject with its object",
    "distractor_of_reference_image": "the distractor is the reference's image",
    "distractor_of_target_image": "the distractor is the target's image",
    "distractor_shows_target": "captions of the distractor's image say the target's subject with its object",
    "unrated": "a word has no rating, and counts as −1",
    "by_overwriting": "kept for ratings that the plural of another word replaced",
    "by_distractor": "kept for the distractor's words; the four of reference and target miss the threshold",
    "any": "any of these",
}
OVERWRITTEN, FREQUENT = 5, 8


def mining_notes(
    rules: Literal["strict", "published"], min_images: int, threshold: float, mining: Mapping[str, Any] | None
) -> str:
    """Markdown of the steps and rules, and of what ``mining.json`` counts, where it is at hand."""
    words, exception = "subject and object of reference and target", ""
    if rules == "published":
        words = "subject and object of reference, target and distractor"
        exception = " (of 101 tries the last one passes, whatever it is)"
    text = _STEPS.format(min_images=min_images, threshold=threshold, words=words, exception=exception)
    text += _RULES.format(rules=rules)
    if mining is None:
        return text
    return text + _differences(mining.get("differences")) + _funnels(mining) + _frequent(mining)


def _differences(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "\nOn these captions the published rules find no triplet at all.\n"
    rows = [(what, f"{found[name]:.2%}") for name, what in _FAULTS.items() if name in found]
    text = f"\nOf {found['triplets']:,} triplets that the published rules mine from the same captions:\n\n"
    text += table(("what the strict rules keep out", "share"), rows)
    if found.get("strict_dropped") is not None:
        text += f"\nThe other way round, {found['strict_dropped']:.2%} of strict triplets miss the threshold by the "
        text += "published ratings of their four words.\n"
    if found.get("overwritten"):
        words = ", ".join(
            f"{plain(short(one['word']))} ({one['rated']:g} → {one['published']:g})"
            for one in found["overwritten"][:OVERWRITTEN]
        )
        text += f"\nThe most frequent words that the published rules rate as another one: {words}.\n"
    return text


def _funnels(mining: Mapping[str, Any]) -> str:
    funnels: Mapping[str, Mapping[str, int]] = mining.get("funnels", {})
    steps = list(dict.fromkeys(step for funnel in funnels.values() for step in funnel))
    if not steps:
        return ""
    rows = [(step, *(_count(funnel.get(step)) for funnel in funnels.values())) for step in steps]
    return "\nFrom captions to what can be drawn:\n\n" + table(("", *funnels), rows)


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _frequent(mining: Mapping[str, Any]) -> str:
    lists = {name: list(mining.get(name, {}).items())[:FREQUENT] for name in ("subjects", "predicates", "objects")}
    if not any(lists.values()):
        return ""
    rows = [
        (name, ", ".join(f"{short(word)} ({count / max(mining['mined'], 1):.1%})" for word, count in words))
        for name, words in lists.items()
    ]
    text = f"\nThe most frequent words of targets (of the first {mining['mined']:,} triplets):\n\n"
    return text + table(("", "share of the triplets"), rows)
