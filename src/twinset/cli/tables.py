"""Tables for people."""

from collections.abc import Sequence
from typing import Any

from twinset.cli.terminal import say
from twinset.contracts.errors import missing_words


def print_counts(counts: dict[str, Any], planning: bool = False) -> None:
    """Print what `twinset.plan`, `build` or `status` returned. planning: without what only shards can tell."""
    stages, rows = {**counts.get("stages", {}), **counts["subsets"]}, list[Sequence[str]]()
    for name, row in stages.items():
        shards = _number(row["shards"])
        if row.get("done") is not None:
            shards = f"{row['done']:,} of {shards}"
        if row.get("stale"):
            shards += f", {len(row['stale'])} stale"
        state = row.get("state", "")
        planned, rejected = _number(row["planned"]), ", ".join(f"{n:,} {why}" for why, n in row["rejected"].items())
        if planning:
            rows.append((name, ", ".join(row["reads"]), planned, shards, state))
        else:
            rows.append((name, planned, _number(row["kept"]), state or shards, rejected))
    last = ("reads", "planned", "shards", "state") if planning else ("planned", "kept", "shards", "rejected")
    print_columns(("stage", *last), rows)
    if planning and any(row["planned"] is None for row in stages.values()):
        say("?: known once the stages that it reads are built")
    for name, row in stages.items():
        if row.get("kinds"):
            say(f"{name}:", ", ".join(f"{count:,} {kind}" for kind, count in row["kinds"].items()))
        for reason, count in row.get("excluded", {}).items():
            meaning = row.get("meanings", {}).get(reason)
            say(f"{name}: {count:,} left out by the plan: {reason}" + (f" ({meaning})" if meaning else ""))
        for number, why in row.get("stale", {}).items():
            say(f"{name} shard {number}: stale, {why}")
        if waiting := row.get("waiting"):
            say(f"{name}: {missing_words(**waiting)}; ask people with twinset review OUT")
        if spent := row.get("spent"):
            cost = "" if spent["cost"] is None else f", cost {spent['cost']:,.2f}"
            tokens = f"{spent['prompt_tokens']:,} tokens read, {spent['completion_tokens']:,} written"
            say(f"{name}: {spent['answers']:,} answers of language models, {tokens}{cost}")
        for problem in (*row.get("warnings", []), *row.get("problems", [])):
            say(problem)
    for line in counts.get("slurm", []):
        say(line)
    told = planning or counts.get("slurm") or any(row.get("waiting") for row in stages.values())
    if not told and any(row.get("missing") or row.get("stale") or row.get("state") for row in stages.values()):
        say("Not finished: unless a build is running, run the same twinset build again")


def print_verified(found: dict[str, Any]) -> None:
    """Print what `twinset.verify` found, a line a stage."""
    for name, row in {**found["stages"], **found["subsets"]}.items():
        numbers = {"shard": row["shards"], "sample": row["kept"], "problem": len(row["problems"])}
        counted_as = [f"{_number(number)} {what}{'s' * (number != 1)}" for what, number in numbers.items()]
        say(f"{name}:", ", ".join(counted_as))


def print_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of cells below a header, in plain text, whatever the width of the terminal."""
    # Cells may be other people's words: they must not steer the terminal, nor break the line.
    lines = [
        ["".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in cell) for cell in line]
        for line in (header, *rows)
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
