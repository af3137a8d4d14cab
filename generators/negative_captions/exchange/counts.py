"""How often captions have words: ``counts.tsv.gz``, of 43,586 captions of COCO (CC BY 4.0, COCO Consortium).

``tests/generators/negative_captions/count_captions.py`` makes it.

Keys, each with words and their counts:

* a pool, or what its words stand with (`sites.Site`): the words that stand there;
* ``att|NOUN``: adjectives of a noun, and ``""`` for none;
* ``obj|NOUN``, ``obj|SORT``: phrases behind a noun ("with a dog"), and ``""`` for none;
* ``with|THING``: photos whose captions name it together with a word; ``named``: photos that name a word, and
  ``""`` for all;
* ``agreed``: of a name, in thousandths, how often a second caption of a photo says it, too.
"""

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

from twinset.generators.negative_captions.exchange.sites import Reading
from twinset.generators.negative_captions.exchange.vocabulary import Vocabulary

COUNTS = Path(__file__).with_name("counts.tsv.gz")
SHRUNK = 50  # pairs of captions by which a name's agreement is drawn to that of all names

Counts = Mapping[str, Mapping[str, float]]


@cache
def counts() -> Counts:
    """The counts, read once."""
    table: dict[str, dict[str, int]] = {}
    with gzip.open(COUNTS, "rt", encoding="utf-8") as lines:
        for line in lines:
            context, *fields = line.rstrip("\n").split("\t")
            table[context] = {word: int(count) for word, count in zip(fields[::2], fields[1::2], strict=True)}
    return table


def counted(photos: Iterable[Sequence[Reading]], words: Vocabulary) -> dict[str, Counter[str]]:
    """Count what captions say. photos: of each, what its captions say."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    agreed, asked = Counter[str](), Counter[str]()
    things = {name for classes in words.nouns.values() for _, name in classes}
    for photo in photos:
        for reading in photo:
            for site in reading.sites:
                if site.other is None:
                    for context in (site.pool, *chain(*site.needs), *site.beside):
                        table[context][site.word] += 1
        named = set[str]().union(*(reading.named for reading in photo))
        table["named"].update(named | {""})
        for thing in named & things:
            table[f"with|{thing}"].update(named - {thing})
        said = Counter(name for reading in photo for name in reading.said)
        for name, captions in said.items():
            asked[name] += captions * (len(photo) - 1)
            agreed[name] += captions * (captions - 1)
    usual = sum(agreed.values()) / max(sum(asked.values()), 1)
    for name in things:
        table["agreed"][name] = round(1000 * (agreed[name] + SHRUNK * usual) / (asked[name] + SHRUNK))
    return table
