"""Which word a caption gets instead of its own: by chance, as often as captions have it there.

A word w of a site's pool has the probability p(w) that captions give it there. The site's word v is left with
probability min(1, (1 - p(v)) / (1 - p(w))) for w, drawn by p(w) / (1 - p(v)): Liu's "Metropolized Gibbs sampler"
(Biometrika 83, 1996). So captions lose each word as often as they get it, and words alone do not tell a negative.
Additions have no way back. They are made to captions of certain lengths (`ADDED`), so that among captions of the length
of these negatives are as many with such an addition of their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from twinset.generators.negative_captions.exchange.counts import Counts
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
#: Kinds that add, and the number of words that they add.
ADDED = {"add_att": 1, "add_obj": 3}


def said_of(readings: Sequence[Reading]) -> set[str]:
    """What all captions of a photo say together, as names."""
    return set[str]().union(*(reading.said for reading in readings))


@dataclass(frozen=True)
class Exchange:
    """Exchanges words of captions.

    usual: factors of words' weights, by `Site.forms`, with which captions lose each as often as they get it; 1 where
    absent. kept: shares of additions, by how many of the kind a caption has.
    """

    words: Vocabulary
    counts: Counts
    usual: Mapping[tuple[str, str], float]
    kept: Mapping[tuple[str, int], float] = field(default_factory=dict)

    def change(self, kind: str, reading: Reading, said: set[str], random: np.random.Generator) -> list[Edit] | None:
        """One change of a caption, None where it has none of this kind. said: as `said_of` its photo."""
        if not self._describes(reading):
            return None
        if kind in ADDED:
            return self._added(kind, reading, said, random)
        work = self._swapped if kind.startswith("swap") else self._replaced
        changes = [edits for site in reading.of(kind) if (edits := work(site, reading, said, random))]
        return changes[random.integers(len(changes))] if changes else None

    def _describes(self, reading: Reading) -> bool:
        """Whether a caption is about what captions of photos name, most of it."""
        named = self.counts["named"]
        return sum(named.get(word, 0) >= RARE for word in reading.named) >= DESCRIBED * len(reading.named)

    def _replaced(self, site: Site, reading: Reading, said: set[str], random: np.random.Generator) -> list[Edit] | None:
        own, allowed = self.weights(site, reading, said)
        if not allowed or not own or random.random() > self.words.kept.get(site.group, 1.0):
            return None
        word = _drawn(allowed, random)
        if random.random() >= accepted(own, allowed, word):
            return None
        return [Edit(site.start, site.end, word)]

    def weights(self, site: Site, reading: Reading, said: set[str]) -> tuple[float, dict[str, float]]:
        """The weight of a site's own word, and of those that it may be left for."""
        likely = self._likely(site)
        if site.word not in likely:
            return 0.0, {}
        return likely[site.word], {
            word: weight for word, weight in likely.items() if self._goes(site, word, reading, said)
        }

    def _likely(self, site: Site) -> dict[str, float]:
        """Words that captions have with all that a site needs, with weights of their probabilities there.

        p(w) times, for each context c, (n(c, w) + PRIOR p(w)) / (n(c) + PRIOR) / p(w).
        """
        pool = self.counts.get(site.pool, {})
        needed = [next(filter(_tells, (self.counts.get(key, {}) for key in keys)), {}) for keys in site.needs]
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

    def _goes(self, site: Site, word: str, reading: Reading, said: set[str]) -> bool:
        """Whether a word excludes that of a site and no caption of the photo says it."""
        name = self._name(site, word)
        if not name or name == site.name or (name, site.name) in self.words.overlaps or name in said:
            return False
        if site.kind == "replace_rel" and site.pool.endswith(" 0") and {name, site.name} == {"sit", "lie"}:
            return False  # of animals either may be said
        if site.kind == "replace_rel":
            there = self.counts[site.needs[0][0]]
            least = OFTEN["prep" if site.pool.endswith("prep") else "verb"] * sum(there.values())
            return min(there[word], there[site.word]) >= least  # of both: what never comes back is known by that
        if site.kind == "replace_att":
            return f"{word} {site.head}" not in self.words.fixed
        return site.kind != "replace_obj" or (
            self.counts["agreed"].get(name, 0) >= 1000 * SAID[0] and self._goes_with(name, reading.named - {site.name})
        )

    def _name(self, site: Site, word: str) -> str:
        """The name that a word of a site's pool shares with its synonyms."""
        known = {"replace_obj": self.words.nouns, "replace_att": self.words.adjectives}.get(site.kind, self.words.verbs)
        placed = site.pool.endswith("prep")
        found = self.words.prepositions.get(tuple(word.split()), ()) if placed else known.get(word, ())
        return next((name for group, name in found if group == site.group), "")

    def _goes_with(self, name: str, named: Iterable[str]) -> bool:
        """Whether a thing goes with all that a caption names, as far as enough captions name it at all."""
        photos, together = self.counts["named"], self.counts.get(f"with|{name}", {})
        alone, whole = photos.get(name, 0), self.photos
        return all(
            together.get(word, 0) >= LIFT * alone * photos[word] / whole and word in together
            for word in named
            if photos.get(word, 0) >= RARE
        )

    @cached_property
    def photos(self) -> float:
        return self.counts["named"][""]

    def _swapped(self, site: Site, reading: Reading, said: set[str], random: np.random.Generator) -> list[Edit] | None:
        """Two words change places with the ratio of how likely captions make either, at most always."""
        other = site.other
        if other is None:
            return None
        first, second = (self._likely(place) for place in (site, other))
        likely = (
            first.get(other.word, 0),
            second.get(site.word, 0),
            first.get(site.word, 0),
            second.get(other.word, 0),
        )
        fixed = {f"{other.word} {site.head}", f"{site.word} {other.head}"} & self.words.fixed
        if not all(likely) or fixed or (site.name, other.name) in self.words.overlaps:
            return None
        if random.random() >= likely[0] * likely[1] / (likely[2] * likely[3]):
            return None
        return [Edit(site.start, site.end, other.word), Edit(other.start, other.end, site.word)]

    def _added(self, kind: str, reading: Reading, said: set[str], random: np.random.Generator) -> list[Edit] | None:
        """What captions add there, to those whose length and additions allow it (see above)."""
        given, part = reading.of(GIVEN[kind]), reading.size // ADDED[kind] % 3
        if part != len(given) or part > 1 or random.random() > self.kept.get((kind, part), 1.0):
            return None
        fits = self._adjectives if kind == "add_att" else self._phrases
        if any(site.word not in fits(site, reading, said, site) for site in given):
            return None  # not as it would be added
        choices = [
            (site, word, weight)
            for site in reading.of(kind)
            for word, weight in fits(site, reading, said, None).items()
        ]
        if not choices:
            return None
        weights = np.array([weight for _, _, weight in choices])
        site, word, _ = choices[int(random.choice(len(choices), p=weights / weights.sum()))]
        return [Edit(site.start, site.end, f"{word} " if kind == "add_att" else f" {word}")]

    def _adjectives(self, site: Site, reading: Reading, said: set[str], given: Site | None) -> dict[str, float]:
        """Adjectives that captions give a noun now and then, with weights, where no caption of the photo says them."""
        known = self.counts.get(site.needs[0][0], {})
        by_class: dict[str, dict[str, float]] = {}
        for word, count in known.items():
            for group, _ in self.words.adjectives.get(word, ()):
                if group in self.words.added:
                    by_class.setdefault(group, {})[word] = count
        free = known.get("", 0) + 1
        found = {}
        for members in by_class.values():
            whole = sum(members.values())
            for word, count in members.items():
                fixed = f"{word} {site.head}" in self.words.fixed
                name = self.words.adjectives[word][0][1]
                if count >= KNOWN and count <= USUAL * whole and not fixed and (given or name not in said):
                    found[word] = count / free
        return found

    def _phrases(self, site: Site, reading: Reading, said: set[str], given: Site | None) -> dict[str, float]:
        """Phrases that captions put behind such nouns, with weights, of things that would be named and are not."""
        of_sort, of_noun = (self.counts.get(key, {}) for (key,) in site.needs)
        if not given and said & self.words.several:
            of_sort = {
                phrase: count for phrase, count in of_sort.items() if self._thing(phrase) not in self.words.people
            }
        companions = Counter(phrase.partition(" ")[0] for phrase, count in of_noun.items() for _ in range(int(count)))
        free = of_noun.get("", 0) + 1
        own = given.name if given else ""
        found = {}
        for phrase, count in of_sort.items():
            companion, thing = phrase.partition(" ")[0], self._thing(phrase)
            if not thing or count < KNOWN or companions[companion] < KNOWN:
                continue
            new = thing == own or thing not in said
            seen = self.counts["agreed"].get(thing, 0) >= 1000 * SAID[1]
            if new and seen and self._goes_with(thing, reading.named - {own}):
                found[phrase] = count / free
        return found

    def _thing(self, phrase: str) -> str:
        """The name of what a phrase names; empty of none."""
        classes = self.words.nouns.get(phrase.split()[-1], ()) if phrase else ()
        return next((name for group, name in classes if group in self.words.named), "")


def _tells(known: Mapping[str, float]) -> bool:
    """Whether a context has been seen often enough, and with different words."""
    return len(known) > 1 and sum(known.values()) >= ENOUGH


def accepted(own: float, allowed: Mapping[str, float], word: str) -> float:
    """The probability with which a word that was drawn replaces the own one."""
    whole = own + sum(allowed.values())
    return min(1.0, (whole - own) / (whole - allowed[word])) if whole > allowed[word] else 1.0


def _drawn(weights: Mapping[str, float], random: np.random.Generator) -> str:
    """One of the words, by their weights."""
    values = np.array([*weights.values()])
    return [*weights][int(random.choice(len(values), p=values / values.sum()))]
