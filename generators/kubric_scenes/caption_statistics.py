"""How often each part of EQ-Kubric's captions is used, and the table of it in ``docs/eq_kubric_statistics.md``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import get_args

from generators.kubric_scenes.pair_sampling import Planned, draw_pairs
from generators.kubric_scenes.scene import Aspect
from generators.kubric_scenes.vocabulary import load_vocabulary

PAIRS = 2000  # an aspect, as published
ORDINARY = "(none)"

_TITLE = f"""# Caption statistics of EQ-Kubric

Of the first {PAIRS:,} pairs of each aspect, drawn with seed 0 from the names that twinset's own assets show. Both
captions of a pair are counted where they can differ. Regenerate after a change of the vocabulary, the grammar or the
drawing:

    python -c "from generators.kubric_scenes.caption_statistics import document; print(document(), end='')" \\
      > docs/eq_kubric_statistics.md

Relations are drawn evenly, and so are the phrases of one relation: "in front of" has no synonym and is said more often
than "on the left hand of". Attribute sets are drawn evenly, and so are the members of one set. Two fifths of the
location pairs have something on top, and only things that can carry it can be their subjects: those are drawn a little
more often.
"""


def statistics(stream: Iterable[Planned], n: int) -> dict[str, Counter[str]]:
    """Uses of each value, by what it is a value of, in the first ``n`` pairs of a stream.

    ``relations`` and ``counts`` are those of a pair in order; ``phrase of RELATION`` counts synonyms; ``member of SET``
    objects of the attribute aspect. What an aspect does not have is absent.
    """
    found: dict[str, Counter[str]] = {}
    for planned in islice(stream, n):
        for what, value in _parts(planned):
            found.setdefault(what, Counter())[value] += 1
    return found


def document() -> str:
    """The Markdown of ``docs/eq_kubric_statistics.md``."""
    vocabulary = load_vocabulary()
    entries = [
        *vocabulary.objects.values(),
        *(entry for members in vocabulary.sets.values() for entry in members.values()),
    ]
    available = {use.id for entry in entries for use in entry.assets.procedural}
    lines = [_TITLE]
    for aspect in get_args(Aspect):
        counted = statistics(draw_pairs(aspect, vocabulary, available, 0, f"eq-kubric-{aspect}"), PAIRS)
        lines += [f"## {aspect.capitalize()}", ""]
        lines += ["| what | values | least | most | uses of each |", "| --- | --- | --- | --- | --- |"]
        for what, uses in sorted(counted.items()):
            each = ", ".join(f"{value} {number}" for value, number in sorted(uses.items()))
            lines.append(f"| {what} | {len(uses)} | {min(uses.values())} | {max(uses.values())} | {each} |")
        lines.append("")
    return "\n".join(lines)


def _parts(planned: Planned) -> Iterator[tuple[str, str]]:
    drawn, subject = planned.drawn, planned.drawn.subject
    wordings = (planned.wording0, planned.wording1)
    if subject is None:
        yield "object", drawn.object0.name
        yield "counts", f"{drawn.count0} → {drawn.count1}"
        for wording, number in zip(wordings, (drawn.count0, drawn.count1), strict=True):
            yield from (("count", str(number)), ("template", wording.template), ("place", wording.place))
        return
    if drawn.aspect == "attribute":
        kind = load_vocabulary().entry(drawn.object0.name).kind
        yield "set", kind
        for thing in (drawn.object0, drawn.object1):
            yield f"member of {kind}", thing.name
        yield from (("object size", drawn.object0.size or ORDINARY), ("subject size", subject.size or ORDINARY))
        yield "relation", drawn.relation0
    else:
        yield "object", drawn.object0.name
        yield "relations", f"{drawn.relation0} → {drawn.relation1}"
    yield "subject", subject.name
    for wording, relation in zip(wordings, (drawn.relation0, drawn.relation1), strict=True):
        if drawn.aspect == "location":
            yield "relation", relation
        yield from (("verb", wording.verb), (f"phrase of {relation}", wording.place))
