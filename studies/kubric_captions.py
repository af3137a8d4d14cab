"""How often each part of EQ-Kubric's captions is used, as Markdown:

python -m studies.kubric_captions > studies/eq_kubric_statistics.md
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import get_args

from twinset.generators.kubric_scenes.captions.pair_sampling import Planned, draw_pairs
from twinset.generators.kubric_scenes.captions.vocabulary import load_vocabulary
from twinset.generators.kubric_scenes.scene.parts import Aspect

PAIRS = 2000  # an aspect, as published
ORDINARY = "(none)"  # a size that is not said

_TITLE = f"""# Caption statistics of EQ-Kubric

Of the first {PAIRS:,} pairs of each aspect, sampled with seed 0 from the names that twinset's own assets show. Both
captions of a pair are counted where they can differ. Run this again after a change of the vocabulary, the grammar or
the sampling:

    python -m studies.kubric_captions > studies/eq_kubric_statistics.md

Relations are sampled evenly, and so are the phrases of one relation: "in front of" has no synonym and is said more
often than "on the left hand of". Attribute sets are sampled evenly, and so are the members of one set.

No two location pairs show the same, except for those with something on top. They are two fifths of the pairs, but there
are only 488 of them: an object lies on another in 122 ways, and each has four other relations. When all 488 were used,
some are used again with the two images in the other order. Objects that can carry many others are therefore subjects
half as often again as the rest.
"""


def statistics(stream: Iterable[Planned], n: int) -> dict[str, Counter[str]]:
    """Uses of each value, by what it is a value of, in the first ``n`` pairs of a stream.

    ``relations`` and ``counts`` are those of a pair in order; ``phrase of RELATION`` counts synonyms; ``member of SET``
    objects of the attribute aspect. What an aspect does not have is absent.
    """
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for planned in islice(stream, n):
        for what, value in _parts(planned):
            found[what][value] += 1
    return dict(found)


def document() -> str:
    """The Markdown of ``studies/eq_kubric_statistics.md``."""
    vocabulary = load_vocabulary()
    entries = [entry for members in (vocabulary.objects, *vocabulary.sets.values()) for entry in members.values()]
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
    """What a pair uses: (what, value)."""
    drawn, wordings = planned.drawn, (planned.wording0, planned.wording1)
    relations, counts = (drawn.relation0, drawn.relation1), (drawn.count0, drawn.count1)
    if drawn.aspect != "attribute":
        yield "object", drawn.object0.name
    if drawn.subject is None:
        yield "counts", f"{counts[0]} → {counts[1]}"
        for wording, number in zip(wordings, counts, strict=True):
            yield from (("count", str(number)), ("template", wording.template), ("place", wording.place))
        return
    yield "subject", drawn.subject.name
    if drawn.aspect == "attribute":
        kind = load_vocabulary().entry(drawn.object0.name).kind
        yield from (("set", kind), (f"member of {kind}", drawn.object0.name), (f"member of {kind}", drawn.object1.name))
        yield from (("object size", drawn.object0.size or ORDINARY), ("subject size", drawn.subject.size or ORDINARY))
        yield "relation", relations[0]
    else:
        yield "relations", f"{relations[0]} → {relations[1]}"
        yield from (("relation", relation) for relation in relations)
    for wording, relation in zip(wordings, relations, strict=True):
        yield from (("verb", wording.verb), (f"phrase of {relation}", wording.place))


if __name__ == "__main__":
    print(document(), end="")
