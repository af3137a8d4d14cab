"""English verb and noun forms by spelling rules, and articles."""

_VOWELS = "aeiou"
_SIBILANTS = ("s", "x", "z", "ch", "sh")
_IRREGULAR_PLURALS = {
    "man": "men", "woman": "women", "child": "children", "person": "people", "foot": "feet", "tooth": "teeth",
    "mouse": "mice", "goose": "geese", "sheep": "sheep", "fish": "fish", "deer": "deer", "moose": "moose",
    "knife": "knives", "leaf": "leaves", "shelf": "shelves", "scarf": "scarves", "calf": "calves", "wolf": "wolves",
    "loaf": "loaves", "half": "halves", "aircraft": "aircraft", "potato": "potatoes", "tomato": "tomatoes",
}  # fmt: skip
_DOUBLED = {"begin", "unwrap", "equip", "control", "compel"}  # stressed on the last of several syllables
_NOT_DOUBLED = {"w", "x", "y"}


def third_person(verb: str) -> str:
    """``runs`` of ``run``."""
    irregular = {"be": "is", "have": "has", "do": "does", "go": "goes"}
    return irregular.get(verb) or _with_s(verb)


def plural(noun: str) -> str:
    """``dogs`` of ``dog``; of several words, the last one's."""
    before, _, last = noun.rpartition(" ")
    stem = next((one for one in ("woman", "man") if last.endswith(one) and last not in ("human", "german")), "")
    if last in _IRREGULAR_PLURALS:
        last = _IRREGULAR_PLURALS[last]
    elif stem:
        last = last.removesuffix(stem) + _IRREGULAR_PLURALS[stem]
    else:
        last = _with_s(last)
    return f"{before} {last}".strip()


def participle(verb: str) -> str:
    """``running`` of ``run``."""
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) and verb != "be":
        return verb[:-1] + "ing"
    return (verb + verb[-1] if _doubles(verb) else verb) + "ing"


def past(verb: str) -> str:
    """``parked`` of ``park``; regular verbs only."""
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return verb[:-1] + "ied"
    return (verb + verb[-1] if _doubles(verb) else verb) + "ed"


def article(word: str) -> str:
    """``a`` or ``an``, by how a word begins."""
    return "an" if word[0].lower() in _VOWELS and not word.lower().startswith(("uni", "use", "one", "eu")) else "a"


def _with_s(word: str) -> str:
    if word.endswith(_SIBILANTS):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def _doubles(verb: str) -> bool:
    """Whether its last consonant is doubled: one syllable, one vowel before one consonant."""
    if len(verb) < 3 or verb[-1] in _VOWELS or verb[-1] in _NOT_DOUBLED or verb[-2] not in _VOWELS:
        return False
    syllables = sum(letter in _VOWELS and (at == 0 or verb[at - 1] not in _VOWELS) for at, letter in enumerate(verb))
    qu = verb[-3] == "u" and verb[-4:-3] == "q"
    return (verb[-3] not in _VOWELS or qu) and (syllables == 1 or qu or verb in _DOUBLED)
