"""What the answers of a folder say: right, wrong and unparsed by split and order, and how much the order decides."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.evaluation.answers.figures import both_orders_figures, order_figures, scores
from twinset.evaluation.answers.files import ORDERS, Answered, AnswerFile, Order, read_answers
from twinset.evaluation.answers.parser import Choice, Reading, as_published, parse
from twinset.evaluation.examples import MATCHING_SCORES
from twinset.evaluation.metrics.figures import Figure, figures_json
from twinset.shards.storage.whole_file import whole_file

ALL = "all"  # splits together


@dataclass(frozen=True, slots=True)
class Read:
    """An answer and how it is read. right: whether the true caption is chosen; None without a choice.

    published: the same by the released evaluation's rule.
    """

    file: str
    split: str
    order: Order
    answered: Answered
    reading: Reading
    right: bool | None
    published: bool | None

    def as_json(self) -> dict[str, Any]:
        """For lists of answers."""
        return {
            "file": self.file,
            "key": self.answered.key,
            "text": self.answered.text,
            "choice": self.reading.choice,
            "reason": self.reading.reason,
            "right": self.right,
            "as_published": self.published,
        }


@dataclass(frozen=True, slots=True)
class OrderReport:
    """The answers in one order.

    reasons: of unparsed answers, by `evaluation.answers.parser.REASONS`.
    published: right, wrong and unparsed by the released rule. counted: right as the files say; None where they do not.
    """

    n: int
    images: int
    counts: dict[str, int]
    reasons: dict[str, int]
    published: dict[str, int]
    counted: int | None
    figures: dict[str, Figure]

    def as_json(self) -> dict[str, Any]:
        """As ``docs/scores.md`` describes it."""
        return {
            **{"n": self.n, "images": self.images, "counts": self.counts, "reasons": self.reasons},
            **{"as_published": self.published, "as_counted_in_file": self.counted},
            **figures_json(self.figures),
        }


@dataclass(frozen=True, slots=True)
class BothOrders:
    """Examples that were asked in both orders. counts: right, wrong and inconsistent, else unparsed."""

    n: int
    images: int
    counts: dict[str, int]
    figures: dict[str, Figure]

    def as_json(self) -> dict[str, Any]:
        """As ``docs/scores.md`` describes it."""
        return {"n": self.n, "images": self.images, "counts": self.counts, **figures_json(self.figures)}


@dataclass(frozen=True, slots=True)
class SplitReport:
    """A split, or all of them. both: None where it was asked in one order only."""

    orders: dict[Order, OrderReport]
    both: BothOrders | None

    def as_json(self) -> dict[str, Any]:
        """As ``docs/scores.md`` describes it."""
        orders: dict[str, Any] = {order: one.as_json() for order, one in self.orders.items()}
        return {**orders, "both_orders": None if self.both is None else self.both.as_json()}


@dataclass(frozen=True, slots=True)
class Report:
    """A folder of answers.

    answers: all of them. stray: what is not an answer, by file and key.
    """

    all: SplitReport
    splits: dict[str, SplitReport]
    answers: tuple[Read, ...]
    stray: dict[str, dict[str, Any]]
    notes: tuple[str, ...]

    @property
    def unparsed(self) -> list[Read]:
        """Answers without a choice."""
        return [one for one in self.answers if one.right is None]

    @property
    def differences(self) -> list[Read]:
        """Answers that the released evaluation's rule reads in another way."""
        return [one for one in self.answers if one.right != one.published]

    def as_json(self) -> dict[str, Any]:
        """As ``docs/scores.md`` describes it."""
        return {
            ALL: self.all.as_json(),
            "splits": {split: one.as_json() for split, one in self.splits.items()},
            "unparsed": [one.as_json() for one in self.unparsed],
            "differences": [one.as_json() for one in self.differences],
            "stray": self.stray,
            "notes": [*self.notes],
        }


def report(folder: Path, seed: int = 0, resamples: int = 2000) -> Report:
    """Read all answers of a folder, as `evaluation.answers.files.read_answers` finds them.

    Args:
        seed, resamples: of the bootstrap, clustered by image.
    """
    files = read_answers(folder)
    read = {(one.split, one.order): [_read(one, answered) for answered in one.answers] for one in files}
    names = [*dict.fromkeys(one.split for one in files)]
    by_split = {name: {order: read[name, order] for order in ORDERS if (name, order) in read} for name in names}
    return Report(
        _split_report(by_split, ALL, seed, resamples),
        {name: _split_report({name: one}, name, seed, resamples) for name, one in by_split.items()},
        tuple(one for some in read.values() for one in some),
        {one.name: dict(one.stray) for one in files if one.stray},
        tuple(_notes(by_split)),
    )


def _read(file: AnswerFile, answered: Answered) -> Read:
    true: Choice = 1 if file.order == "positive-first" else 2
    first, second = answered.captions if true == 1 else answered.captions[::-1]
    reading = parse(answered.text, (first, second))
    by_their_rule = as_published(answered.text)
    return Read(
        file.name,
        file.split,
        file.order,
        answered,
        reading,
        None if reading.choice is None else reading.choice == true,
        None if by_their_rule is None else by_their_rule == true,
    )


def _split_report(by_split: dict[str, dict[Order, list[Read]]], label: str, seed: int, resamples: int) -> SplitReport:
    orders = dict[Order, OrderReport]()
    for order in ORDERS:
        some = [one for split in by_split.values() for one in split.get(order, ())]
        if some:
            orders[order] = _order_report(some, f"{label} {order}", seed, resamples)
    pairs = paired([one for split in by_split.values() for some in split.values() for one in some])
    return SplitReport(orders, _both_orders(pairs, f"{label} both", seed, resamples) if pairs else None)


def _order_report(some: Sequence[Read], label: str, seed: int, resamples: int) -> OrderReport:
    images = [one.answered.image for one in some]
    said = [one.answered.counted for one in some]
    return OrderReport(
        len(some),
        len({*images}),
        _counts(one.right for one in some),
        dict(sorted(Counter(one.reading.reason for one in some if one.right is None).items())),
        _counts(one.published for one in some),
        None if None in said else sum(map(bool, said)),
        order_figures([(one.right, one.reading.choice) for one in some], images, seed, resamples, label),
    )


def _both_orders(pairs: Sequence[tuple[Read, Read]], label: str, seed: int, resamples: int) -> BothOrders:
    images = [one.answered.image for one, _ in pairs]
    figures, counts = both_orders_figures(
        [((a.right, a.reading.choice), (b.right, b.reading.choice)) for a, b in pairs], images, seed, resamples, label
    )
    return BothOrders(len(pairs), len({*images}), counts, figures)


def paired(answers: Iterable[Read]) -> list[tuple[Read, Read]]:
    """Answers to the same example in the two orders, positive first; those in one order only are left out."""
    found = dict[tuple[str, str], dict[Order, Read]]()
    for one in answers:
        found.setdefault((one.split, one.answered.key), {})[one.order] = one
    return [(one[ORDERS[0]], one[ORDERS[1]]) for one in found.values() if len(one) == len(ORDERS)]


def _counts(right: Iterable[bool | None]) -> dict[str, int]:
    counted = Counter(right)
    return {"right": counted[True], "wrong": counted[False], "unparsed": counted[None]}


def _notes(by_split: dict[str, dict[Order, list[Read]]]) -> Iterable[str]:
    for name, split in by_split.items():
        if len(split) < len(ORDERS):
            yield f"{name}: only {next(iter(split))}; how much the order decides cannot be known"
        elif alone := {one.answered.key for one in split[ORDERS[0]]} ^ {one.answered.key for one in split[ORDERS[1]]}:
            yield f"{name}: {len(alone)} examples have an answer in one order only, such as {min(alone)}"
        for order, some in split.items():
            wrong = [one for one in some if one.answered.counted not in (None, one.published is True)]
            if wrong:
                yield (
                    f"{wrong[0].file}: in {len(wrong)} answers, such as {wrong[0].answered.key}, `correct` is not what "
                    f"the released evaluation's rule gives ({order})"
                )


def write_scores(path: Path, answers: Sequence[Read], facts: dict[str, str]) -> int:
    """Write the scores of examples that were asked in both orders; returns how many.

    Keys are ``SPLIT/KEY`` and groups are images, as `evaluation.benchmarks` has them for SugarCrepe. Caption 0 is the
    true one.

    Args:
        facts: of the file's metadata.
    """
    pairs = paired(answers)
    alone = len(answers) - 2 * len(pairs)
    rows = []
    for first, second in pairs:
        one = first.answered
        s00, s01 = scores(_chosen(first), _chosen(second))
        identity = {"key": f"{first.split}/{one.key}", "subset": first.split, "category": first.split}
        rows.append({**identity, "group": PurePosixPath(one.image).stem, "s00": s00, "s01": s01})
    told = {**facts, "left_out": {"one order": alone} if alone else {}}
    schema = MATCHING_SCORES.with_metadata({"twinset": json.dumps(told, sort_keys=True)})
    with whole_file(path) as beside:
        pq.write_table(pa.Table.from_pylist(rows, schema), beside)
    return len(rows)


def _chosen(one: Read) -> int | None:
    """Of the caption that was chosen, as shown."""
    return None if one.reading.choice is None else one.reading.choice - 1
