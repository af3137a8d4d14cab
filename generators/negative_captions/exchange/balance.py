"""An exchange that is balanced on a sample of captions: each word comes in as often as it goes out."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from twinset.generators.negative_captions.exchange.choice import ADDED, Exchange, said_of
from twinset.generators.negative_captions.exchange.counts import Counts, counted
from twinset.generators.negative_captions.exchange.sites import GIVEN, Reading
from twinset.generators.negative_captions.exchange.vocabulary import Vocabulary

ROUNDS = 40
STEP = 0.25  # exponent of a round's correction
STEADY = 3.0  # exchanges of a word that are taken for balanced besides those of the sample
MORE = 2  # times as many additions to captions with none as to those with one, or the other way round, at most
EQUAL = 5000  # captions of the sample that weigh as much as all that ship


def balanced(
    words: Vocabulary, shipped: Counts, photos: Sequence[Sequence[Reading]], random: np.random.Generator
) -> Exchange:
    """Exchange by counts that ship and those of a sample, with factors that balance it there.

    photos: of each photo of the sample, what its captions say.
    """
    exchange = Exchange(words, _joined(shipped, photos, words), {})
    usual = _factors(exchange, photos)
    exchange = Exchange(words, exchange.counts, usual)
    kept = {}
    for kind in ADDED:
        changed = Counter(
            len(reading.of(GIVEN[kind]))
            for photo in photos
            for reading in photo
            if exchange.change(kind, reading, said_of(photo), random)
        )
        for number in (0, 1):
            kept[kind, number] = min(1.0, MORE * (changed[1 - number] + 1) / (changed[number] + 1))
    return Exchange(words, exchange.counts, usual, kept)


def _factors(exchange: Exchange, photos: Sequence[Sequence[Reading]]) -> dict[tuple[str, str], float]:
    """Factors of weights, by `Site.forms`, with which each form is lost about as often as it is got."""
    number: dict[tuple[str, str], int] = {}
    own = list[float]()  # weight of a place's word
    place, weights, lost, got = list[int](), list[float](), list[list[int]](), list[list[int]]()  # of words for a place
    for photo in photos:
        said = said_of(photo)
        for reading in photo:
            for site in reading.sites:
                if not site.kind.startswith("replace"):
                    continue
                mine, allowed = exchange.weights(site, reading, said)
                if not mine or not allowed:
                    continue
                forms = [number.setdefault(form, len(number)) for form in site.forms(site.word)]
                for word, weight in allowed.items():
                    place.append(len(own))
                    weights.append(weight)
                    lost.append(forms)
                    got.append([number.setdefault(form, len(number)) for form in site.forms(word)])
                own.append(mine)
    factors = np.ones(len(number))
    if not own:
        return {}
    places, before, after = np.array(place), np.array(lost), np.array(got)
    for _ in range(ROUNDS):
        mine_now = np.array(own)[places] * factors[before].prod(1)
        theirs = np.array(weights) * factors[after].prod(1)
        whole = np.bincount(places, theirs)[places]
        # As `choice.accepted`; the word is drawn with its share of the whole.
        flow = theirs / whole * np.minimum(1.0, whole / np.maximum(mine_now + whole - theirs, 1e-300))
        out, come = (np.bincount(side.ravel(), np.repeat(flow, side.shape[1]), len(number)) for side in (before, after))
        factors *= ((out + STEADY) / (come + STEADY)) ** STEP
    return dict(zip(number, factors.tolist(), strict=True))


def _joined(shipped: Counts, photos: Sequence[Sequence[Reading]], words: Vocabulary) -> Counts:
    """Counts that ship and those of a sample; of the latter's things, agreement and company are too few."""
    own = counted(photos, words)
    share = EQUAL / (EQUAL + sum(map(len, photos)))
    theirs, ours = share / max(share, 1 - share), (1 - share) / max(share, 1 - share)
    joined: dict[str, Mapping[str, float]] = dict(shipped)
    for key, known in own.items():
        if not key.startswith(("with|", "named", "agreed")):
            old = shipped.get(key, {})
            joined[key] = {word: theirs * old.get(word, 0) + ours * known[word] for word in {**old, **known}}
    return joined
