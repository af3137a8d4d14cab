"""Writes the report of a run from its score files: page, JSON, tables as CSV, of figures as LaTeX and Markdown too."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import yaml

from twinset.cards.page import as_uri, runs
from twinset.cards.rendering import render
from twinset.contracts.canonical import finite
from twinset.evaluation.examples import Benchmark
from twinset.evaluation.report.distributions import equivariance_panels, plot
from twinset.evaluation.report.gallery import mistake_blocks
from twinset.evaluation.report.result_tables import benchmark_tables, run_tables
from twinset.evaluation.report.results import RESAMPLES, as_json, measured_run
from twinset.evaluation.report.tables import SHORT, as_csv, as_latex, as_markdown, compact, decimals, differs, number
from twinset.shards.storage.whole_file import write_text

TEMPLATES = Path(__file__).parent / "templates"
MEANINGS = Path(__file__).with_name("meanings.yaml")


def explained(figures: Iterable[str]) -> str:
    """What some figures mean, each once; nothing of those that installed packages bring."""
    names, meanings = [*figures], yaml.safe_load(MEANINGS.read_text("utf-8"))
    return " ".join(words for name, words in meanings.items() if any(re.match(name, figure) for figure in names))


def charted(figures: Sequence[str]) -> list[str]:
    """Those that papers print, and those that installed packages bring; all figures where there are no such."""
    return [name for name in figures if name in SHORT or not explained([name])] or list(figures)


def write_report(
    out: Path,
    benchmarks: Mapping[str, Benchmark] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    seeds: Mapping[str, Sequence[str]] | None = None,
) -> list[Path]:
    """Write ``report.html``, ``results.json`` and ``tables/`` of a run; returns the files, equal for equal scores.

    Args:
        out: folder of the run, with its ``scores``.
        benchmarks: by name, from which pictures are read; kept in ``pictures`` for other times.
        seed, resamples: of the bootstrap.
        seeds: models by the name of the one that they are runs of, as `measured_run` takes them.

    Raises:
        WrongUse: no score files, one is broken, or ``seeds`` names what is not there.
    """
    run = measured_run(out, seed, resamples, seeds)
    sections, tables = [], []
    for results in run:
        benchmark, ours = (benchmarks or {}).get(results.name), benchmark_tables(results)
        panels = equivariance_panels([model.scored for model in results.models])
        tables += ours
        sections.append(
            {
                "results": results,
                "tables": ours,
                "plot": plot(panels) if panels else "",
                "mistakes": list(mistake_blocks(out, results, benchmark)),
            }
        )
    totals, own = run_tables(run), {name for results in run for name in charted(results.figures)}
    page = render(
        "report.html.j2", TEMPLATES, sections=sections, totals=totals, picture=as_uri, runs=runs, decimals=decimals,
        differs=differs, explained=explained, number=number, charted=charted,
    )  # fmt: skip
    results_json = json.dumps(finite(as_json(run)), indent=1, ensure_ascii=False)
    files = {out / "report.html": page, out / "results.json": results_json}
    for table in [*tables, *totals]:
        files[out / "tables" / f"{table.name}.csv"] = as_csv(table)
        short = compact(table, own)
        if len(short.heads) > short.labels:
            files[out / "tables" / f"{table.name}.tex"] = as_latex(short)
            files[out / "tables" / f"{table.name}.md"] = as_markdown(short)
    for path, text in files.items():
        write_text(path, text)
    return list(files)
