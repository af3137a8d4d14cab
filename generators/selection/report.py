"""What a selection did, in numbers for its card: the funnel, gaps of scores, and blind attacks before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twinset.generators.blind_attacks import ALL, SignCounts, attack_table
from twinset.generators.selection.refinement import AXES, Bools
from twinset.generators.selection.source import ATTACKS, FUNNEL, GAPS, PICTURE, SelectedNegatives
from twinset.manifests.canonical import canonical_json
from twinset.manifests.markdown import cell, table
from twinset.manifests.panels import Panels, Steps

if TYPE_CHECKING:
    from twinset.generators.selection.rules import Step
    from twinset.generators.selection.scored import Scored

BINS = 100  # of a histogram of gaps
MOST_WORDS = 20  # gaps in words that are told apart in a histogram
EVERY, BEFORE, AFTER = "all", "before refinement", "selected"
_TITLES = {"vera": "VERA", "cola": "CoLA", "lm": "language model, nats a token", "words": "words"}


def reports_of(source: SelectedNegatives, scored: Scored, steps: Sequence[Step]) -> dict[str, bytes]:
    """The JSON files of a selection.

    ``funnel.json``: rules; kinds, in order; steps: reason and what is kept by kind, all rows first.
    ``gaps.json``: by score, edges of bins and counts of gaps (caption less negative) at three points: all, before
    refinement, selected. ``attacks.json``: kinds, and at the same points pairs by attack, kind and the gap's sign
    (`generators.blind_attacks.SignCounts`).
    """
    every = np.ones(len(scored), dtype=np.bool_)
    before = next((step.kept for step in reversed(steps) if step.reason != "unbalanced"), every)
    points = {EVERY: every, BEFORE: before, AFTER: steps[-1].kept}
    funnel = [("", every), *((step.reason, step.kept) for step in steps)]
    contents: dict[str, Any] = {
        FUNNEL: {
            "rules": source.rules,
            "kinds": scored.kinds,
            "steps": [{"reason": reason, "kept": scored.by_kind(kept)} for reason, kept in funnel],
        },
        GAPS: _gaps(scored, points),
        ATTACKS: {"kinds": scored.kinds, **{name: _signs(scored, chosen) for name, chosen in points.items()}},
    }
    return {name: canonical_json(content) + b"\n" for name, content in contents.items()}


def _gaps(scored: Scored, points: Mapping[str, Bools]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, axis in AXES.items():
        gaps, reach = scored.gaps[name], axis.reach
        if np.isnan(gaps).all():
            continue
        edges = np.linspace(-reach, reach, BINS + 1) if reach else np.arange(-MOST_WORDS - 0.5, MOST_WORDS + 1)
        lowest, highest = (-reach, reach) if reach else (-MOST_WORDS, MOST_WORDS)
        counts = {
            point: np.histogram(np.clip(gaps[chosen & ~np.isnan(gaps)], lowest, highest), edges)[0].tolist()
            for point, chosen in points.items()
        }
        found[name] = {"edges": [round(edge, 4) for edge in edges.tolist()], **counts}
    return found


def _signs(scored: Scored, chosen: Bools) -> dict[str, dict[str, list[int]]]:
    counts = SignCounts()
    counts.add({name: gaps[chosen] for name, gaps in scored.gaps.items()}, scored.kind[chosen], scored.kinds)
    return counts.signs()


def gap_panels(gaps: Mapping[str, Any]) -> Panels:
    """Histograms of each score's gaps, from ``gaps.json``."""
    return {
        f"caption − negative: {_TITLES[name]}": Steps(
            one["edges"], {point: one[point] for point in (EVERY, BEFORE, AFTER)}
        )
        for name, one in gaps.items()
    }


def how_selected(source: SelectedNegatives, reports: Mapping[str, Any]) -> str:
    """Markdown for the card."""
    text = _rules(source)
    if FUNNEL in reports:
        text += _funnel(source, reports[FUNNEL])
    if GAPS in reports:
        text += f"\n![Gaps of scores before and after refinement](_meta/{PICTURE})\n"
    if ATTACKS in reports:
        attacks = reports[ATTACKS]
        text += "\nHow often the true caption is guessed without the image (half of ties counted as right):\n"
        for point, said in ((EVERY, "All negative captions:"), (BEFORE, "Before refinement:"), (AFTER, "Selected:")):
            text += f"\n{said}\n\n{attack_table(attacks[point], attacks['kinds'])}"
    return text


def _rules(source: SelectedNegatives) -> str:
    steps = []
    scores = " and ".join(_TITLES[name].split(",")[0] for name in source.quality)
    similarity = (
        f"similarity to the caption (CLIP's text encoder) below {source.similarity:g}"
        if source.similarity is not None
        else ""
    )
    share = f"the {source.quantile:g} quantile of the kind"
    if similarity:
        steps.append(f"{similarity[0].upper()}{similarity[1:]}.")
    if source.rules == "published":
        steps.append(f"{scores} of the negative caption: each at least {share}.")
        steps.append("A full stop at the end, more than ten characters, and the first of equal prompts.")
    else:
        mean = "The mean of " if len(source.quality) > 1 else ""
        steps.append(f"{mean}{scores} of the negative caption: at least {share}.")
        steps.append("No repeated negative captions, no questions, and a final full stop or exclamation mark.")
    if source.refine:
        axes = ", ".join(_TITLES[name] for name in source.refine)
        steps.append(
            f"Adversarial refinement, all kinds together: of each cell of the gaps' grid ({axes}; {source.grid} bins a "
            "side) and of the opposite cell equally many remain, sampled by seed and key."
        )
    text = f"Selected by the rules `{source.rules}`:\n\n"
    text += "".join(f"{number}. {step}\n" for number, step in enumerate(steps, 1))
    return text + _DIFFERENCES[source.rules] + _own(source)


def _own(source: SelectedNegatives) -> str:
    """Where the settings are not those of the rules."""
    usual = type(source).model_validate({"kind": source.kind, "scores": source.scores, "rules": source.rules})
    names = ("quality", "quantile", "similarity", "refine", "grid")
    changed = [name for name in names if getattr(source, name) != getattr(usual, name)]
    if not changed:
        return ""
    listed = ", ".join(f"`{name}` ({_said(getattr(usual, name))})" for name in changed)
    return f"\nNot as the rules have it by default: {listed}.\n"


def _said(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else "none" if value is None else f"{value:g}"


_DIFFERENCES = {
    "published": """
These are the steps of the authors' released code. Their paper (section 5.2) says differently "top 35 percentile,
according to the combined score of both models", removes questions by name, and has neither a step of similarity nor a
least length. Unlike the released code, the refinement is seeded, keeps the order, and takes gaps of exactly ±1.
""",
    "paper": """
These are the steps of the paper (section 5.2). The authors' released code does something else: similarity
below 0.999 first, each score at least its own 0.645 quantile rather than "the combined score of both models", a full
stop at the very end, and more than ten characters.
""",
}


def _funnel(source: SelectedNegatives, funnel: Mapping[str, Any]) -> str:
    kinds, rows = funnel["kinds"], []
    before: dict[str, int] = {}
    for step in funnel["steps"]:
        kept = {ALL: sum(step["kept"].values()), **step["kept"]}
        loss = [f"−{before[kind] - kept[kind]:,}" if before else f"{kept[kind]:,}" for kind in (ALL, *kinds)]
        rows.append((step["reason"] or "scored", *loss))
        before = kept
    rows.append(("selected", *(f"{before[kind]:,}" for kind in (ALL, *kinds))))
    text = table(("", ALL, *(kind.replace("_", " ") for kind in kinds)), rows)
    meanings = "".join(
        f"* `{step['reason']}`: {cell(source.reasons[step['reason']])}\n"
        for step in funnel["steps"]
        if step["reason"] in source.reasons
    )
    return f"\nWhat each step takes away, by kind:\n\n{text}\n{meanings}"
