"""``twinset eval blind``: what benchmarks give away to a guess that looks at captions or images alone."""

import argparse
import sys
from typing import Any

from twinset.cli.options import add_cache, add_described, answer
from twinset.cli.tables import print_columns
from twinset.cli.terminal import say
from twinset.contracts.errors import WrongUse


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    add_cache(add_described(commands, "blind", blind))


def blind(asked: argparse.Namespace) -> None:
    """``twinset eval blind``."""
    from twinset.evaluation.benchmarks.built_dataset import BuiltDataset
    from twinset.evaluation.blind_probes.run import give_away, write_probes
    from twinset.evaluation.dataset_parts import Part, open_benchmarks

    names = [name for name, _ in asked.benchmarks]
    if asked.detectors and not asked.model:
        raise WrongUse("--detectors reads features of a model; name theirs with --model")
    if asked.out and (twice := next((name for name in names if names.count(name) > 1), None)):
        raise WrongUse(f"{twice}: is named twice; both would go to {asked.out}/probes/{twice}.json")
    # Images need not lie there, and none is looked for, where only captions are probed.
    captions_only = not (asked.images or asked.model)
    opened = []
    for name, data in asked.benchmarks:
        for part in open_benchmarks(name, data, asked.only, captions_only):
            if isinstance(part, Part) and part.kind not in ("pair", "text-pair"):
                say(f"{part.name}: not probed, it has no pairs of captions", file=sys.stderr)
            else:
                if isinstance(part, BuiltDataset):
                    part.every_split = True
                opened.append(part)
    if not opened:
        raise WrongUse(
            f"{', '.join(names)}: no pairs of captions, which blind probes are about; name another benchmark"
        )
    encode = trained = None
    if asked.model:
        from twinset.evaluation.blind_probes.detectors import read_detectors
        from twinset.evaluation.blind_probes.run import encoder_of
        from twinset.models.encoders.contract import Running

        trained = read_detectors(asked.detectors) if asked.detectors else None
        encode = encoder_of(asked.model, asked.cache, Running(asked.device), trained)
    found = [give_away(one, asked.images, encode, asked.seed, trained) for one in opened]
    if asked.out:
        for one in found:
            write_probes(one, asked.out)
    documents = [one.as_json() for one in found]
    answer(asked, documents, lambda: [*map(_print_table, documents)])


def _print_table(found: dict[str, Any]) -> None:
    rule = found["rule"]
    say(f"{found['title']}: {found['all']['pairs']:,} pairs of {found['all']['groups']:,} groups, chance 50 %")
    lines = [("", "pairs", "guess", "right %", "95 % interval", "ties %", "")]
    small = [name for name, row in found["by"].items() if "/" in name and row["groups"] < rule["least_groups"]]
    for name, row in {"all": found["all"], **found["by"]}.items():
        if name in small:
            continue
        lines.append((name, f"{row['pairs']:,}", "one bag of words", f"{row['same_bag']:.2f}", "", "", ""))
        for probe, one in row["probes"].items():
            interval = "too few groups" if one["low"] is None else f"{one['low']:.2f} to {one['high']:.2f}"
            flag = "SOLVED" if one["solves"] else "predictable" if one["flagged"] else ""
            said = probe if "classifier" in one["guess"] else one["guess"]
            lines.append(("", "", said, f"{one['expected']:.2f}", interval, f"{one['ties']:.2f}", flag))
        area = "too few" if row["unpaired_words"] is None else f"{row['unpaired_words']:.3f}"
        lines.append(("", "", "words, unpaired: area under the curve", area, "", "", ""))
        for detected, share in row["detectors"].items():
            lines.append(("", "", f"detectors: {detected}", f"{share:.2f}", "", "", ""))
    print_columns(lines[0], lines[1:])
    say(
        f"Half of ties count as right. Flagged where the interval, clustered by group, begins above "
        f"{rule['chance'] + rule['margin']:g} %: SOLVED, or predictable, where it stays open what belongs to what. "
        f"Words, unpaired: second captions among first captions of other pairs, of as many words; 0.5 is chance.\n"
    )
    if small:
        say(f"{found['benchmark']}: {len(small)} categories of too few groups; --json has them", file=sys.stderr)
    for reason, count in found["left_out"].items():
        say(f"{found['benchmark']}: {count:,} examples left out: {reason}", file=sys.stderr)
    for note in found["notes"]:
        say(f"{found['benchmark']}: {note}", file=sys.stderr)
