"""How often captions have words: ``counts.tsv.gz``, of 43,586 captions of COCO (CC BY 4.0, COCO Consortium).

``tests/generators/negative_captions/count_captions.py`` of commit b04d5aa7 made it.

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
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

from twinset.generators.negative_captions.exchange.sites import Reading

COUNTS = Path(__file__).with_name("counts.tsv.gz")

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


def counted(readings: Iterable[Reading]) -> dict[str, Counter[str]]:
    """Count the words of captions, by their pools and by what they stand with."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for reading in readings:
        for site in reading.sites:
            if site.partner is None:
                for context in (site.pool, *chain(*site.needs), *site.beside):
                    table[context][site.word] += 1
    return table
