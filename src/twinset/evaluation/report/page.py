"""Writes the report of a run from its score files: page, JSON, and every table as CSV and LaTeX."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from twinset.cards.page import as_uri, runs
from twinset.cards.rendering import render
from twinset.cards.sheet import Block, Cell, mark_difference, words
from twinset.contracts.canonical import finite
from twinset.evaluation.examples import Benchmark
from twinset.evaluation.report import distributions
from twinset.evaluation.report.distributions import on_both_papers
from twinset.evaluation.report.mistakes import QUERY_ROLES, Mistake, Shown, answers_to, keep, kept, kept_file
from twinset.evaluation.report.result_tables import benchmark_tables, run_tables
from twinset.evaluation.report.results import RESAMPLES, BenchmarkResults, as_json, measured_run
from twinset.evaluation.report.strips import strip_blocks
from twinset.evaluation.report.tables import (
    as_csv,
    as_latex,
    as_markdown,
    compact,
    decimals,
    differs,
    marked,
    number,
)
from twinset.shards.storage.whole_file import write_text

#: By what the names of figures begin with.
_MEANINGS = {
    "text": "text: each image scores higher with its own caption (BiVLC: I2T).",
    "image": "image: each caption with its own image (T2I).",
    "group": "group: both.",
    "ipos2t": "ipos2t, ineg2t: the same of image 0, of image 1 alone; tpos2i, tneg2i: of caption 0, of caption 1.",
    "group_match": "group_match: the two right pairs score higher in sum than the two wrong ones.",
    "order": "order12, order21: both captions are given to their images at once, in either order of the captions.",
    "text_detection": "text_detection, image_detection: captions, and images, that are rightly told natural or "
    "synthetic.",
    "accuracy": "accuracy: the right caption scores higher; of a statement, the score is on the right side of the "
    "model's threshold.",
    "p_c": "p_c: the caption is above the model's threshold, p_f: the wrong one is not; acc, min: their mean and the "
    "lesser (VALSE).",
    "vqa_acc": "vqa_acc, q_acc, i_acc, g_acc: answers, questions, images and groups that are right where yes is a "
    "score above the threshold (NaturalBench).",
    "mean_equivariance": "mean_equivariance_text, mean_equivariance_image: distance from equivariance, 0 at best, in "
    "units of the scores.",
    "recall@": "recall@K: a target is among the K entries that score highest.",
    "map": "map: mean average precision of all targets, in the first K entries.",
    "all_targets": "all_targets: every target scores higher than every other entry.",
    "pair_accuracy": "pair_accuracy, set_accuracy: the captions of two images that differ in one preposition, of all "
    "four of the same objects, come first.",
    "mean_kendall": "mean_kendall, mean_spearman: rank correlation with people's order, -1 to 1; overlap@5: how many "
    "of people's first five are among the model's.",
    "grounding": "grounding@S: the boundary is found within S seconds; grounding: the mean over all S.",
}
_WHOLE = ("text", "image", "group", "accuracy")  # names that others begin with


def explained(figures: Iterable[str]) -> str:
    """What some figures mean, each once; nothing of those that installed packages bring."""
    names = [*figures]
    return " ".join(
        words
        for begin, words in _MEANINGS.items()
        if any(name == begin if begin in _WHOLE else name.startswith(begin) for name in names)
    )


TEMPLATES = Path(__file__).parent / "templates"


def write_report(
    out: Path,
    benchmarks: Mapping[str, Benchmark] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    seeds: Mapping[str, Sequence[str]] | None = None,
) -> list[Path]:
    """Write ``report.html``, ``results.json`` and ``tables/`` of a run; the same bytes for the same score files.

    Args:
        out: folder of the run, with its ``scores``.
        benchmarks: by name, from which pictures of the worst mistakes are read; kept in ``mistakes`` for other times.
        seed, resamples: of the bootstrap.
        seeds: models by the name of the one that they are runs of, as `measured_run` takes them.

    Returns:
        The files that were written.

    Raises:
        WrongUse: no score files, one is broken, or ``seeds`` names what is not there.
    """
    run = measured_run(out, seed, resamples, seeds)
    sections, tables = [], []
    for results in run:
        ours = benchmark_tables(results)
        tables += ours
        sections.append(
            {
                "results": results,
                "tables": ours,
                "plots": [{"caption": said, **on_both_papers(panels)} for said, panels in _plots(results)],
                "strips": list(strip_blocks(out, results, (benchmarks or {}).get(results.name))),
                "mistakes": list(_mistakes(out, results, (benchmarks or {}).get(results.name))),
            }
        )
    totals = run_tables(run)
    page = render(
        "report.html.j2", TEMPLATES, sections=sections, totals=totals, picture=as_uri, runs=runs, decimals=decimals,
        differs=differs, explained=explained, number=number,
    )  # fmt: skip
    results_json = json.dumps(finite(as_json(run)), indent=1, ensure_ascii=False)
    files = {out / "report.html": page, out / "results.json": results_json}
    for table in [*tables, *totals]:
        files[out / "tables" / f"{table.name}.csv"] = as_csv(table)
        files[out / "tables" / f"{table.name}.tex"] = as_latex(table)
        short = compact(table)
        if len(short.heads) > short.labels:
            marks = marked(short)
            files[out / "tables" / f"{short.name}.tex"] = as_latex(short, marks)
            files[out / "tables" / f"{short.name}.md"] = as_markdown(short, marks)
    for path, text in files.items():
        write_text(path, text)
    return list(files)


def _plots(results: BenchmarkResults) -> Iterator[tuple[str, Sequence[distributions.Panel]]]:
    """Captions and panels."""
    scored = [model.scored for model in results.models if model.scored.scores]
    if not scored:
        return
    if results.asked == "query":
        yield (
            "Queries with a target among the first K, in percent; a tie counts against it",
            distributions.recall_panels(scored),
        )
    elif results.asked == "grounding":
        yield "Boundaries found to within some seconds, in percent", distributions.error_panels(scored)
    elif results.asked == "matching":
        yield "Scores of pairs that belong together and of pairs that do not", distributions.score_panels(scored)
        shown, subsets = distributions.largest_subsets(scored)
        part = "" if subsets == len(shown) else f" of the {len(shown)} largest of {subsets:,} subsets"
        for raw, units in ((False, "in units of each model's spread"), (True, "in those of the scores")):
            if panels := distributions.equivariance_panels(scored, shown, raw):
                told = f"Equivariance scores{part}, {units}: the narrower about 0, the more equivariant"
                yield f"{told} (EqBen, Figures 6 and 13)", panels
        if panels := distributions.calibration_panels(scored):
            yield "Of pairs with about this probability, the share that match", panels


def _mistakes(out: Path, results: BenchmarkResults, benchmark: Benchmark | None) -> Iterator[dict[str, Any]]:
    """By model the worst mistakes as blocks, each with its answer."""
    path = kept_file(out, results.models[0].scored.folder)
    keys = {one.key for model in results.models for one in model.mistakes}
    answers = {model.name: answers_to(model.scored, keys) for model in results.models}
    for model in results.models:
        digest = model.scored.about.data_digest
        names = [(one.key, one.best_wrong) for one in model.mistakes]
        shown = kept(path, digest) if benchmark is None else keep(path, benchmark, names, digest)
        blocks = [
            (_block(one, shown.get(name)), one, _better(one, model.name, answers))
            for name, one in zip(names, model.mistakes, strict=True)
        ]
        yield {"model": model.name, "blocks": blocks, "without": sum(name not in shown for name in names)}


def _better(mistake: Mistake, model: str, answers: Mapping[str, Mapping[str, Mistake]]) -> tuple[str, Mistake] | None:
    """The other model that answers a question best, where one is right (EqBen, Figure 8)."""
    others = [(name, of[mistake.key]) for name, of in answers.items() if name != model and mistake.key in of]
    right = [(name, one) for name, one in others if one.by < 0 or (one.by == 0 and "s00" not in one.scores)]
    return min(right, key=lambda item: item[1].by, default=None)


def _block(mistake: Mistake, shown: Shown | None) -> Block:
    note = " / ".join(dict.fromkeys(filter(None, (mistake.subset, mistake.category))))
    if shown is None:
        return Block(mistake.key, [], 1, note)
    texts = dict(shown.texts)
    pair = [text for label, text in shown.texts if label in ("caption 0", "caption 1", "before", "after")]
    if len(pair) == 2:
        marked = dict(zip(texts, mark_difference(*pair), strict=True))
    else:
        marked = {label: words(text) for label, text in texts.items()}
    if QUERY_ROLES[0] in {*texts, *dict(shown.images)}:
        return Block(mistake.key, _roles(shown), len(QUERY_ROLES), note)
    images, captions = list(shown.images), list(marked)
    # Caption i below image i; where there is one image, both captions are its own cells.
    cells = []
    for place in range(max(len(images), len(captions), 1)):
        label, image = images[place] if place < len(images) else (captions[place], None)
        if place < len(images) and image is None:
            label += ": cannot be read"
        caption = marked[captions[place]] if place < len(captions) else ()
        cells.append(Cell(label, image, caption, side=place % 2))
    return Block(mistake.key, cells, 2, note)


def _roles(shown: Shown) -> list[Cell]:
    """What is shown of a query: an image, a text or both in the cell of its role; the target is outlined."""
    images, texts = dict(shown.images), dict(shown.texts)
    return [
        Cell(
            f"{role}: cannot be read" if role in images and images[role] is None else role,
            images.get(role),
            words(texts.get(role, "")),
            outline="right" if role == QUERY_ROLES[1] else "",
        )
        for role in QUERY_ROLES
        if role in images or role in texts
    ]
