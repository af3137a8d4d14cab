"""The report of a study as Markdown: verdicts first, then scores, gate, controls, probes, and how it was decided."""

from collections.abc import Sequence

import numpy as np

from studies.science.design import Design
from studies.science.detected import CHANCE, HALVES, MEANING
from studies.science.findings import MAIN, SHOWN, Findings
from studies.science.markdown import table
from studies.science.power import described
from studies.science.verdicts import Compared, overall

CLAIMS_PNG, ARMS_PNG = "science_claims.png", "science_arms.png"


def write(found: Findings) -> str:
    """The whole report; it holds no date, no place and no name of a machine."""
    known = described(found.powers, found.study.design, found.groups)
    parts = [_head(found), known, _summary(found), _verdicts(found), _comparisons(found), _arms(found), _gate(found)]
    parts.append(_controls(found))
    return "\n\n".join([*parts, _probes(found), _detectors(found), _method(found), _limits(found)]) + "\n"


def _head(found: Findings) -> str:
    design = found.study.design
    return (
        "# The papers' claims at small scale\n\n"
        "Written by `python -m studies.science`: text, tables and plots come from the score files of its runs. "
        "Small CLIPs are trained on painted scenes. What holds here need not hold for large models, nor the "
        f"other way round. {len(design.seeds)} seeds, {len(design.claims)} claims, design `{design.digest}`, at most "
        f"{design.budget.minutes} minutes of {design.budget.cores} cores: all written before the first run."
    )


def _summary(found: Findings) -> str:
    design = found.study.design
    decided: dict[str, list[str]] = {"supported": [], "refuted": [], "undecided": [], "not tested": []}
    left = dict.fromkeys(design.claims)
    for test in design.primary.values():
        for name, verdict in _marked(found, test).items() if test in found.judged else ():
            decided[verdict.rstrip("†")].append(name + "†" * verdict.endswith("†"))
            left.pop(name, None)
    if left:
        decided["not finished"] = [*left]
    lines = [f"* **{verdict}**: {', '.join(names) or 'none'}" for verdict, names in decided.items()]
    return "## Result\n\n" + "\n".join(lines)


def _verdicts(found: Findings) -> str:
    design = found.study.design
    verdicts = {test: _marked(found, test) for test in found.judged}
    tests = list(found.judged)
    rows = []
    for name, claim in design.claims.items():
        cells = [f"{name}. {claim.says}", f"{claim.paper}, {claim.where}"]
        rows.append([*cells, *(verdicts[test].get(name, "") for test in tests)])
    head = ["claim", "source", *(design.tests[test].title for test in tests)]
    primary = " and ".join(design.tests[test].title for test in found.primary)
    return (
        "## Verdicts\n\n"
        f"{primary} decide. The other test sets say how far a verdict carries. A claim of several comparisons "
        "is supported where all of them are, refuted where one of them is, and else not tested where one of them is. "
        "†: a comparison that decides does not survive Holm's correction, or an interval that allows for few seeds.\n\n"
        + table(head, rows)
    )


def _marked(found: Findings, test: str) -> dict[str, str]:
    """Verdicts of claims on a test set, with a dagger where one of the comparisons that decide it is in doubt."""
    doubted = {(one.claim, one.verdict) for one in found.judged[test] if one.doubts}
    verdicts = overall(found.study.design, found.judged, test)
    return {name: f"{verdict}†" if (name, verdict) in doubted else verdict for name, verdict in verdicts.items()}


def _comparisons(found: Findings) -> str:
    parts = ["## Differences", f"![Differences of arms with intervals]({CLAIMS_PNG})"]
    parts.append(
        "Dot: mean. Thick: 95 % interval. Thin: the interval that allows for few seeds. Ticks: single seeds. "
        f"Dashed: {found.study.design.least:g} points."
    )
    for test, compared in found.judged.items():
        rows = [_comparison(one, found.study.design) for one in compared]
        head = ["claim", "comparison", "figure", "%", "published", "difference", "95 % interval"]
        head += ["few seeds", "p (Holm)", "verdict"]
        parts.append(f"### {found.study.design.tests[test].title}\n\n" + table(head, rows))
    return "\n\n".join(parts)


def _comparison(one: Compared, design: Design) -> list[str]:
    published = design.claims[one.claim].published.get(one.than)
    verdict = one.verdict if not one.doubts else f"{one.verdict}, but {' and '.join(one.doubts)}"
    return [
        one.claim,
        f"{one.better} − {one.than}",
        one.figure,
        f"{one.a:.1f} − {one.b:.1f}",
        "" if published is None else f"{published:+.1f}",
        f"{one.difference:+.1f}",
        f"{one.low:+.1f} to {one.high:+.1f}",
        f"{one.wide[0]:+.1f} to {one.wide[1]:+.1f}",
        f"{one.p_holm:.3g}",
        verdict,
    ]


def _arms(found: Findings) -> str:
    design = found.study.design
    parts = [
        "## Arms",
        f"![Scores of the arms]({ARMS_PNG})",
        "Mean over seeds, ± standard deviation of seeds; percent.",
    ]
    for test in found.tests:
        names = SHOWN[design.tests[test].asks]
        rows = []
        for one in found.scores:
            if one.test == test:
                rows.append([one.arm, design.arms[one.arm].title, *(_spread(one.figures[name]) for name in names)])
        counted = f"{found.rows[test]:,} examples of {found.groups[test]:,} groups"
        parts.append(f"### {design.tests[test].title}: {counted}\n\n" + table(["arm", "", *names], rows))
        kinds = [one for one in found.scores if one.test == test and len(one.kinds) > 1]
        if kinds and test in design.primary.values():
            title = f"### {design.tests[test].title}: {MAIN[design.tests[test].asks]} by kind of change"
            rows = [[one.arm, *(f"{np.mean(values):.1f}" for values in one.kinds.values())] for one in kinds]
            parts.append(f"{title}\n\n" + table(["arm", *kinds[0].kinds], rows))
    rows = []
    for name in design.claimed:
        if design.arms[name].kind == "clip" and name not in found.unfinished:
            settings, (images, texts) = design.clip_settings(name), design.encoded(name)
            row = [
                name,
                f"{settings['batch']}",
                f"{settings['steps']:,}",
                f"{images:,}",
                f"{texts:,}",
                f"{images + texts:,}",
            ]
            rows.append(row)
    parts.append(
        "### What the arms encode\n\nImages and texts together are equal: an arm that reads hard negatives has smaller "
        "batches.\n\n" + table(["arm", "batch", "steps", "images", "texts", "together"], rows)
    )
    parts.append(_regularisers(found))
    return "\n\n".join(parts)


def _regularisers(found: Findings) -> str:
    """How much regularisers weigh: one that is active may still be too small to change an answer."""
    rows = []
    for name, last in found.last.items():
        weight = found.study.design.clip_settings(name)["regulariser_weight"]
        active = f"{last['active_fraction']:.0%}" if "active_fraction" in last else ""
        if "regulariser" in last:
            rows.append([name, f"{last['objective']:.3f}", f"{weight * last['regulariser']:.4f}", active])
    return (
        "### What the regularisers weigh\n\nIn the last step, mean over seeds. Active: share of EqSim's residuals "
        "above their margins.\n\n" + table(["arm", "loss of captions", "regulariser × weight", "active"], rows)
    )


def _spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"


def _gate(found: Findings) -> str:
    design, gate = found.study.design, found.study.design.gate
    rows = [
        [
            f"{one.seed}{' (calibration)' if place < len(design.calibration_seeds) else ''}",
            *(f"{score:.1f}" for score in one.by_kind.values()),
        ]
        for place, one in enumerate(found.gates)
    ]
    head = ["seed", *gate.kinds]
    return (
        f"## Gate\n\nThe base alone was tuned, on seed {design.calibration_seeds[0]} alone, until its {gate.figure} "
        f"score on {design.tests[gate.test].title} lay between {gate.low:g} and {gate.high:g} %. Then it was "
        "frozen, and the arms were trained from the bases of other seeds "
        "([decisions](decisions.md)).\n\n" + table(head, rows)
    )


def _controls(found: Findings) -> str:
    lines = [
        f"* {one.arm} ends with the bytes of {one.other}: {'yes' if one.same else '**no**'}" for one in found.controls
    ]
    return "## Controls of the code\n\n" + ("\n".join(lines) or "None.")


def _probes(found: Findings) -> str:
    design, rows = found.study.design, list[list[str]]()
    for test, about in found.probes.items():
        best = max(about["all"]["probes"].items(), key=lambda one: float(one[1]["expected"]))
        low = best[1]["low"]
        said = f"{best[0]}: {best[1]['expected']:.1f}" + ("" if low is None else f" (from {low:.1f})")
        solved = "yes" if about["solved"] else "no"
        rows.append([design.tests[test].title, said, solved])
    return (
        "## What the test sets give away\n\nBlind guesses see captions alone, images alone, or both but never whether "
        "they match; 50 % is chance.\n\n" + table(["test set", "best blind guess, %", "solved blindly"], rows)
    )


def _detectors(found: Findings) -> str:
    design, head = found.study.design, "## Detectors: what a caption or an image alone tells"
    if not found.detected:
        return f"{head}\n\nNot finished."
    own = [
        f"{half} {100 * about['train_accuracy']:.1f} and {100 * about['test_accuracy']:.1f} %"
        for half in HALVES
        if (about := found.halves.get(half))
    ]
    pairs = sum(found.halves[HALVES[0]][f"{part}_pairs"] for part in ("train", "validation", "test"))
    rows = [["chance", *(f"{value:g}" for value in CHANCE.values())]]
    rows += [[design.tests[test].title, *one.cells()] for test, one in found.detected.items()]
    parts = [
        head,
        "Detectors (BiVLC, Table 4 and appendix E) see one caption, or one image: a linear layer on features of the "
        f"base of seed {design.seeds[0]}, which stays as it is. They learn to tell the first half of a pair from the "
        f"second, on {pairs:,} pairs of {', '.join(design.detectors['data'])}. Right on those that they were trained "
        f"on, and on others that were held out: {'; '.join(own)}.",
        *MEANING,
        table(["test set", *CHANCE], rows),
        "Percent with 95 % intervals over scenes. Galleries have no second half, and are not in the table: arms "
        "image-only and text-only ask the same of them.",
    ]
    kinds = found.detected.get(design.primary["pairs"])
    if kinds is not None and len(kinds.kinds) > 1:
        parts.append(f"### {design.tests[design.primary['pairs']].title}: detectors by kind of change")
        parts.append(table(["kind", *CHANCE], [[kind, *kinds.cells(kind)] for kind in kinds.kinds]))
    return "\n\n".join(parts)


def _method(found: Findings) -> str:
    design = found.study.design
    rows = [[f"{one.spread:g}", f"{one.plain:.1%}", f"{one.wide:.1%}"] for one in found.coverage]
    return (
        "## How it is decided\n\n"
        "* Arms, test sets, claims, seeds and thresholds are in "
        "[`design.yaml`](design.yaml), written before the arms ran; its digest is above.\n"
        f"* {design.resamples:,} resamples of seeds, then of groups of test examples. All seeds are tested on the same "
        "examples, so the groups of a resample are drawn once for all of its seeds.\n"
        f"* Supported: the 95 % interval lies above 0 and the difference is {design.least:g} points or more. Refuted: "
        "it lies below 0. Else not tested, where the table above says that it cannot be, or undecided.\n"
        "* p is twice the share of resamples on the other side of 0, corrected by Holm over all comparisons on a test "
        "set. A verdict that does not survive it says so.\n"
        f'* {len(design.seeds)} seeds say little of their own spread. The column "few seeds" has the percentiles that '
        "allow for it (Hesterberg, 2015). A verdict that changes with them says so.\n\n"
        "Simulated studies whose true difference is 0, and the share whose interval holds it. Spread: of seeds, in "
        "standard errors of one seed's mean over its groups.\n\n"
        + table(["spread of seeds", "95 % interval", "few seeds"], rows)
    )


def _limits(found: Findings) -> str:
    design = found.study.design
    missing = [one.title for name, one in design.tests.items() if name not in found.tests and not one.tuning]
    notes = [
        "* Arms share one learning rate and one number of steps. None was tuned; each might gain from its own.",
        "* Weights of regularisers are the published ones, found for other models and data.",
        f"* All runs together took {found.seconds / 3600:.1f} hours of processes of one thread, beside other work; the "
        f"budget was {design.budget.minutes * design.budget.cores / 60:g} hours of cores.",
    ]
    if found.unfinished:
        notes.append(f"* Not finished for every seed, so left out: {', '.join(found.unfinished)}.")
    if missing:
        notes.append(f"* Not built, so not tested: {', '.join(missing)}.")
    return "## Limits\n\n" + "\n".join(notes)
