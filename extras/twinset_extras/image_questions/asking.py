"""Yes/no questions of a caption in the form of the Davidsonian Scene Graph (Cho et al. 2023, arXiv 2310.18235).

An entity, an attribute, a count and a relation are each asked for on their own. Questions about entities are the
parents of those that are about what these are like.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from twinset_extras.image_questions.entities import Entities
from twinset_extras.image_questions.facts import (
    Fact,
    attribute_facts,
    be,
    count_facts,
    picture_facts,
    text_facts,
    time_facts,
)
from twinset_extras.image_questions.questions import FactQuestion
from twinset_extras.image_questions.relations import Relations
from twinset_extras.image_questions.vocabulary import vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc

KINDS = ("global", "entity", "count", "attribute", "relation")


def prepared(caption: str) -> str:
    """A caption as it is parsed: in small letters where it shouts, which a parser does not know."""
    return caption.lower() if caption.isupper() else caption


def questions_of(doc: Doc) -> list[FactQuestion]:
    """The questions of a parsed caption, parents first; none where it names nothing that can be seen."""
    words = vocabulary()
    entities = Entities(doc, words)
    facts: list[Fact] = [*picture_facts(entities, words), *text_facts(entities), *time_facts(doc, words)]
    for entity in entities.all:
        definite = entity.there == entity.the and entity.there.startswith("the ")
        there = f"{be(entity)} {entity.there} visible" if definite else f"{be(entity)} there {entity.there}"
        facts.append(Fact("entity", (entity,), (entity.name,), f"{there}?"))
    facts += count_facts(doc, entities, words)
    facts += attribute_facts(doc, entities, words)
    facts += Relations(doc, entities, words).facts()
    asked: dict[str, FactQuestion] = {}
    ids: dict[int, int] = {}
    named, uses = dict[int, str](), Counter[str]()
    for entity in entities.all:
        uses[entity.singular] += 1
        named[entity.number] = f"{entity.singular} {uses[entity.singular]}"
    for fact in sorted(facts, key=lambda fact: KINDS.index(fact.kind)):
        if fact.question in asked:
            continue
        number = len(asked) + 1
        if fact.kind == "entity":
            ids[fact.about[0].number] = number
            parents: tuple[int, ...] = ()
        else:
            parents = tuple(dict.fromkeys(ids[entity.number] for entity in fact.about))
        names = {entity.name for entity in fact.about}
        meaning = *(named[entity.number] for entity in fact.about), *(word for word in fact.words if word not in names)
        asked[fact.question] = FactQuestion(
            fact.kind, fact.question, number, parents, fact.words, (fact.kind, *meaning)
        )
    return list(asked.values())
