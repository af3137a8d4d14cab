"""How far figures of a model move with the prompt that it is asked by."""

import re
from collections import defaultdict
from collections.abc import Iterator

from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.report.results import BenchmarkResults, ModelResults
from twinset.evaluation.report.tables import Cell, Row, Table

_PROMPT = re.compile(r"^([^:/]+)(?:/([^:]+))?:")


def prompts_table(results: BenchmarkResults) -> Iterator[Table]:
    """For each model that was asked by two prompts or more, a row a figure: where it is lowest and highest."""
    models: defaultdict[str, list[ModelResults]] = defaultdict(list)
    for model in results.models:
        if (model.scored.about.model_extra or {}).get("prompt"):
            models[_PROMPT.sub(r"\1:", model.name)].append(model)
    rows = []
    for name, asked in models.items():
        for figure in results.figures if len(asked) > 1 else ():
            found = sorted((one.all.figures[figure].value, _prompt(one)) for one in asked if figure in one.all.figures)
            if len(found) > 1:
                (low, lowest), (high, highest) = found[0], found[-1]
                cells: list[Cell] = [Figure(low), lowest, Figure(high), highest, Figure(high - low)]
                rows.append(Row([name, figure, len(found), *cells]))
    if rows:
        heads = ["model", "figure", "prompts", "lowest", "with", "highest", "with", "moves by"]
        folder = results.models[0].scored.folder
        yield Table(f"{folder}-prompts", f"{results.titled}: how far figures move with the prompt", heads, 2, rows)


def _prompt(model: ModelResults) -> str:
    return str((model.scored.about.model_extra or {})["prompt"])
