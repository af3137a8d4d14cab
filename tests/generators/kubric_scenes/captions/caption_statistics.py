"""How often each part of EQ-Kubric's captions is used."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice

from twinset.generators.kubric_scenes.captions.pair_sampling import Planned
from twinset.generators.kubric_scenes.captions.vocabulary import load_vocabulary

ORDINARY = "(none)"  # a size that is not said


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
