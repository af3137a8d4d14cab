"""Which word a caption gets instead of its own: by chance, as often as captions have it there.

A word w of a site's pool has the probability p(w) that captions give it there. The site's word v is left with
probability min(1, (1 - p(v)) / (1 - p(w))) for w, drawn by p(w) / (1 - p(v)): Liu's "Metropolized Gibbs sampler"
(Biometrika 83, 1996). So captions lose each word as often as they get it, and words alone do not tell a negative.
Additions have no way back. They are made to captions of certain lengths (`ADDED`), so that among captions of the length
of these negatives are as many with such an addition of their own. An exchange is balanced on a sample of captions: each
word comes in there as often as it goes out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from twinset.generators.negative_captions.exchange.counts import Counts, counted
from twinset.generators.negative_captions.exchange.sites import GIVEN, Reading, Site
from twinset.generators.negative_captions.exchange.vocabulary import Vocabulary
from twinset.generators.negative_captions.wording import Edit

PRIOR = 0.1  # pseudo-count of a word's share of its pool, in each context
ENOUGH = 5  # words of a context, more general ones aside
DESCRIBED = 0.6  # share of a caption's nouns and verbs that captions of photos have
RARE = 10  # photos below which a word says nothing of what goes with it
LIFT = 0.3  # of the photos that would name two things by chance, so many must name both
SAID = 0.2, 0.45  # share of captions that name a thing which is there, at least: replaced, added
USUAL = 0.12  # the share of a noun's adjectives that one may have which is added
OFTEN = {"prep": 0.25, "verb": 0.1}  # share of a relation's place or object that a word has which comes there
KNOWN = 2  # times that captions must have what is added
ROUNDS = 40
STEP = 0.25  # exponent of a round's correction
STEADY = 3.0  # exchanges of a word that are taken for balanced besides those of the sample
MORE = 2  # times as many additions to captions with none as to those with one, or the other way round, at most
EQUAL = 5000  # captions of the sample that weigh as much as all that ship
#: Kinds that add, and the number of words that they add.
ADDED = {"add_att": 1, "add_obj": 3}


def said_of(readings: Sequence[Reading]) -> set[str]:
    """What all captions of a photo say together, as names."""
    return set[str]().union(*(reading.stated for reading in readings))


@dataclass(frozen=True)
class Exchange:
    """Exchanges words of captions.

    usual: factors of words' weights, by `Site.forms`, with which captions lose each as often as they get it; 1 where
    absent. kept: shares of additions, by how many of the kind a caption has.
    """

    words: Vocabulary
    counts: Counts
    usual: Mapping[tuple[str, str], float] = field(default_factory=dict)
    kept: Mapping[tuple[str, int], float] = field(default_factory=dict)

    def change(self, kind: str, reading: Reading, stated: set[str], random: np.random.Generator) -> list[Edit]:
        """One change of a caption, empty where it has none of this kind. stated: as `said_of` its photo."""
        photos = self.counts["named"]
        if sum(photos.get(word, 0) >= RARE for word in reading.named) < DESCRIBED * len(reading.named):
            return []  # it is not about what captions of photos name
        if kind in ADDED:
            return self._added(kind, reading, stated, random)
        if kind.startswith("swap"):
            changes = [self._swapped(site, site.partner, random) for site in reading.of(kind) if site.partner]
        else:
            changes = [self._replaced(site, reading, stated, random) for site in reading.of(kind)]
        changes = [edits for edits in changes if edits]
        return changes[random.integers(len(changes))] if changes else []

    def _replaced(self, site: Site, reading: Reading, stated: set[str], random: np.random.Generator) -> list[Edit]:
        own, allowed = self.weights(site, reading, stated)
        if not allowed or not own or random.random() > self.words.kept.get(site.group, 1.0):
            return []
        word = _drawn(allowed, random)
        whole = own + sum(allowed.values())
        accepted = min(1.0, (whole - own) / (whole - allowed[word])) if whole > allowed[word] else 1.0
        return [Edit(site.start, site.end, word)] if random.random() < accepted else []

    def weights(self, site: Site, reading: Reading, stated: set[str]) -> tuple[float, dict[str, float]]:
        """The weight of a site's own word, and of those that it may be left for."""
        likely = self._likely(site)
        if site.word not in likely:
            return 0.0, {}
        allowed = {word: weight for word, weight in likely.items() if self._goes(site, word, reading, stated)}
        return likely[site.word], allowed

    def _likely(self, site: Site) -> dict[str, float]:
        """Words that captions have with all that a site needs, with weights of their probabilities there.

        p(w) times, for each context c, (n(c, w) + PRIOR p(w)) / (n(c) + PRIOR) / p(w).
        """
        pool, needed = self.counts.get(site.pool, {}), []
        for keys in site.needs:
            # The first that has been seen often enough, and with different words.
            seen = (self.counts.get(key, {}) for key in keys)
            needed.append(next((known for known in seen if len(known) > 1 and sum(known.values()) >= ENOUGH), {}))
        if not pool or not all(needed):
            return {}
        whole = sum(pool.values())
        contexts = [(known, sum(known.values())) for known in (*needed, *map(self.counts.get, site.beside)) if known]
        weights = {}
        for word in min(needed, key=len):
            if word in pool and all(word in known for known in needed):
                share = pool[word] / whole
                weight = share * math.prod(self.usual.get(form, 1.0) for form in site.forms(word))
                for known, size in contexts:
                    weight *= (known.get(word, 0) + PRIOR * share) / (size + PRIOR) / share
                weights[word] = weight
        return weights

    def _goes(self, site: Site, word: str, reading: Reading, stated: set[str]) -> bool:
        """Whether a word excludes that of a site and no caption of the photo says it."""
        name = self._name(site, word)
        if not name or name == site.name or (name, site.name) in self.words.overlaps or name in stated:
            return False
        if site.kind == "replace_obj":
            often = self.counts["agreed"].get(name, 0) >= 1000 * SAID[0]
            return often and self._goes_with(name, reading.named - {site.name})
        if site.kind == "replace_att":
            return f"{word} {site.head}" not in self.words.fixed
        if site.pool.endswith(" 0") and {name, site.name} == {"sit", "lie"}:
            return False  # of animals either may be said
        there = self.counts[site.needs[0][0]]
        least = OFTEN["prep" if site.pool.endswith("prep") else "verb"] * sum(there.values())
        return min(there[word], there[site.word]) >= least  # of both: what never comes back is known by that

    def _name(self, site: Site, word: str) -> str:
        """The name that a word of a site's pool shares with its synonyms."""
        if site.pool.endswith("prep"):
            classes = self.words.prepositions.get(tuple(word.split()), ())
        else:
            of_kind = {"replace_obj": self.words.nouns, "replace_att": self.words.adjectives}
            classes = of_kind.get(site.kind, self.words.verbs).get(word, ())
        return next((name for group, name in classes if group == site.group), "")

    def _goes_with(self, name: str, named: Iterable[str]) -> bool:
        """Whether a thing goes with all that a caption names, as far as enough captions name it at all."""
        photos, together = self.counts["named"], self.counts.get(f"with|{name}", {})
        return all(
            together.get(word, 0) >= LIFT * photos.get(name, 0) * photos[word] / photos[""] and word in together
            for word in named
            if photos.get(word, 0) >= RARE
        )

    def _swapped(self, site: Site, partner: Site, random: np.random.Generator) -> list[Edit]:
        """Two words change places with the ratio of how likely captions make either, at most always."""
        first, second = self._likely(site), self._likely(partner)
        after = first.get(partner.word, 0) * second.get(site.word, 0)
        before = first.get(site.word, 0) * second.get(partner.word, 0)
        fixed = {f"{partner.word} {site.head}", f"{site.word} {partner.head}"} & self.words.fixed
        if not after or not before or fixed or (site.name, partner.name) in self.words.overlaps:
            return []
        edits = [Edit(site.start, site.end, partner.word), Edit(partner.start, partner.end, site.word)]
        return edits if random.random() < after / before else []

    def _added(self, kind: str, reading: Reading, stated: set[str], random: np.random.Generator) -> list[Edit]:
        """What captions add there, to those whose length and additions allow it (see above)."""
        given, part = reading.of(GIVEN[kind]), reading.size // ADDED[kind] % 3
        if part != len(given) or part > 1 or random.random() > self.kept.get((kind, part), 1.0):
            return []
        fits = self._adjectives if kind == "add_att" else self._phrases
        if any(site.word not in fits(site, reading, stated) for site in given):
            return []  # not as it would be added
        choices = {
            (site.start, site.end, word): weight
            for site in reading.of(kind)
            for word, weight in fits(site, reading, stated).items()
        }
        if not choices:
            return []
        start, end, word = _drawn(choices, random)
        return [Edit(start, end, f"{word} " if kind == "add_att" else f" {word}")]

    def _adjectives(self, site: Site, reading: Reading, stated: set[str]) -> dict[str, float]:
        """Adjectives that captions give a noun now and then, with weights, where no caption of the photo says them."""
        known = self.counts.get(site.needs[0][0], {})
        by_class: dict[str, dict[str, float]] = {}
        for word, count in known.items():
            for group, _ in self.words.adjectives.get(word, ()):
                if group in self.words.added:
                    by_class.setdefault(group, {})[word] = count
        fitting = {}
        for members in by_class.values():
            usual = USUAL * sum(members.values())
            for word, count in members.items():
                new = site.word or self.words.adjectives[word][0][1] not in stated
                if new and KNOWN <= count <= usual and f"{word} {site.head}" not in self.words.fixed:
                    fitting[word] = count / (known.get("", 0) + 1)
        return fitting

    def _phrases(self, site: Site, reading: Reading, stated: set[str]) -> dict[str, float]:
        """Phrases that captions put behind such nouns, with weights, of things that would be named and are not."""
        of_sort, of_noun = (self.counts.get(key, {}) for (key,) in site.needs)
        people: Iterable[str] = self.words.people if not site.word and stated & self.words.several else ()
        companions = Counter[str]()
        for phrase, count in of_noun.items():
            companions[phrase.partition(" ")[0]] += int(count)
        fitting = {}
        for phrase, count in of_sort.items():
            companion, _, noun = phrase.partition(" ")
            classes = self.words.nouns.get(noun.split()[-1], ()) if noun else ()
            name = next((name for group, name in classes if group in self.words.named), "")
            if not name or name in people or count < KNOWN or companions[companion] < KNOWN:
                continue
            new = name == site.name or name not in stated
            often = self.counts["agreed"].get(name, 0) >= 1000 * SAID[1]
            if new and often and self._goes_with(name, reading.named - {site.name}):
                fitting[phrase] = count / (of_noun.get("", 0) + 1)
        return fitting


def _drawn(weights: Mapping[Any, float], random: np.random.Generator) -> Any:
    """One of the keys, by their weights."""
    values = np.array([*weights.values()])
    return [*weights][int(random.choice(len(values), p=values / values.sum()))]


def balanced(
    words: Vocabulary, shipped: Counts, photos: Sequence[Sequence[Reading]], random: np.random.Generator
) -> Exchange:
    """Exchange by counts that ship and those of a sample, with factors that balance it there.

    photos: of each photo of the sample, what its captions say.
    """
    sample = [(reading, said_of(photo)) for photo in photos for reading in photo]
    exchange = Exchange(words, _joined(shipped, [reading for reading, _ in sample]))
    exchange = replace(exchange, usual=_factors(exchange, sample))
    kept = {}
    for kind in ADDED:
        added = Counter(
            len(reading.of(GIVEN[kind])) for reading, stated in sample if exchange.change(kind, reading, stated, random)
        )
        for number in (0, 1):
            kept[kind, number] = min(1.0, MORE * (added[1 - number] + 1) / (added[number] + 1))
    return replace(exchange, kept=kept)


def _factors(exchange: Exchange, sample: Sequence[tuple[Reading, set[str]]]) -> dict[tuple[str, str], float]:
    """Factors of weights, by `Site.forms`, with which each form is lost about as often as it is got."""
    number: dict[tuple[str, str], int] = {}
    rows = list[tuple[int, float, float, list[int], list[int]]]()

    def numbers(site: Site, word: str) -> list[int]:
        return [number.setdefault(form, len(number)) for form in site.forms(word)]

    sites = ((site, reading, stated) for reading, stated in sample for site in reading.sites)
    for place, (site, reading, stated) in enumerate(sites):
        if site.kind.startswith("replace"):
            own, allowed = exchange.weights(site, reading, stated)
            if own and allowed:
                lost = numbers(site, site.word)
                rows += [(place, own, weight, lost, numbers(site, word)) for word, weight in allowed.items()]
    if not rows:
        return {}
    factors = np.ones(len(number))
    places, owns, weights, before, after = map(np.array, zip(*rows, strict=True))
    for _ in range(ROUNDS):
        mine = owns * factors[before].prod(1)
        theirs = weights * factors[after].prod(1)
        whole = np.bincount(places, theirs)[places]
        # As `Exchange.change`; the word is drawn with its share of the whole.
        flow = theirs / whole * np.minimum(1.0, whole / np.maximum(mine + whole - theirs, 1e-300))
        out, come = (np.bincount(side.ravel(), np.repeat(flow, side.shape[1]), len(number)) for side in (before, after))
        factors *= ((out + STEADY) / (come + STEADY)) ** STEP
    return dict(zip(number, factors.tolist(), strict=True))


def _joined(shipped: Counts, sample: Sequence[Reading]) -> Counts:
    """Counts that ship and those of a sample, of which the agreement and the company of things would be too few."""
    share = EQUAL / (EQUAL + len(sample))
    theirs, ours = share / max(share, 1 - share), (1 - share) / max(share, 1 - share)
    joined: dict[str, Mapping[str, float]] = dict(shipped)
    for key, own in counted(sample).items():
        old = shipped.get(key, {})
        joined[key] = {word: theirs * old.get(word, 0) + ours * own[word] for word in {**old, **own}}
    return joined
