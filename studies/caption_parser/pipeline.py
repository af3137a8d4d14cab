"""Trains a pipeline with spaCy's own loop, and measures pipelines."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.caption_parser.trees import Sentence, as_doc, documents
from twinset.models.spacy_pipelines import find_pipeline

if TYPE_CHECKING:
    from spacy.language import Language

SETTINGS = Path(__file__).with_name("settings.cfg")
META = {
    "name": "captions_sm",
    "version": "0.2.0",
    "description": "Small English pipeline for image captions: tagger, morphologiser, lemmatiser and a parser with "
    "ClearNLP-style labels.",
    "license": "CC BY-SA 4.0",
    "sources": [
        {
            "name": "UD English EWT",
            "url": "universaldependencies.org",
            "license": "CC BY-SA 4.0",
            "author": "Natalia Silveira et al.",
        },
        {
            "name": "COCO captions",
            "url": "cocodataset.org",
            "license": "CC BY 4.0",
            "author": "COCO Consortium",
        },
    ],
}
#: What `en_core_web_sm`, whose lemmas are learned, takes for forms of "rid".
LEMMAS = {"riding": "ride", "rides": "ride"}
MEASURES = ("tag_acc", "pos_acc", "lemma_acc", "dep_uas", "dep_las")


def train(
    sentences: Mapping[str, Sequence[Sentence]],
    dev: Sequence[Sentence],
    scratch: Path,
    steps: int,
    seed: int,
    start: str | None,
) -> Language:
    """A pipeline after its last step, with averaged weights.

    Args:
        sentences: to learn from, by where they come from; all weigh the same.
        dev: measured on the way, which decides nothing.
        scratch: folder for spaCy's files of sentences.
        steps: batches of about 1,000 words.
        start: a pipeline to go on from, by name or folder; None begins with random weights.
    """
    import spacy
    from spacy.tokens import DocBin
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import train as spacy_train
    from spacy.util import load_config
    from thinc.api import fix_random_seed

    blank = spacy.blank("en")
    rng = random.Random(seed)
    docs = [doc for part in sentences.values() for doc in documents(blank.vocab, part, rng)]
    rng.shuffle(docs)
    DocBin(docs=docs).to_disk(scratch / "train.spacy")
    DocBin(docs=[as_doc(blank.vocab, [sentence]) for sentence in dev]).to_disk(scratch / "dev.spacy")
    overrides = {
        "paths.train": str(scratch / "train.spacy"),
        "paths.dev": str(scratch / "dev.spacy"),
        "training.max_steps": steps,
        "system.seed": seed,
    }
    config = load_config(SETTINGS, overrides=overrides, interpolate=False)
    if start is not None:
        source = find_pipeline(start).source
        # The lemmatiser begins again: one that was loaded takes every word's lemma for an unknown one in training.
        begun = {name: {"source": source} for name in config["nlp"]["pipeline"] if name != "trainable_lemmatizer"}
        config["components"] = {**config["components"], **begun}
    (scratch / "out").mkdir()
    fix_random_seed(seed)
    nlp = init_nlp(config)
    spacy_train(nlp, scratch / "out")
    return named(spacy.load(scratch / "out" / "model-last"))


def named(nlp: Language) -> Language:
    """A pipeline that says what it is, no longer where its sentences lay, and knows `LEMMAS`."""
    nlp.meta.update(META)
    nlp.config["paths"].update({"train": None, "dev": None})
    if "attribute_ruler" not in nlp.pipe_names:
        ruler: Any = nlp.add_pipe("attribute_ruler")
        for form, lemma in LEMMAS.items():
            ruler.add([[{"LOWER": form}]], {"LEMMA": lemma})
    return nlp


def measure(nlp: Language, sentences: Sequence[Sentence]) -> dict[str, float]:
    """Accuracy of tags, parts of speech and lemmas, UAS and LAS, with the words as given, each in 0 to 1."""
    from spacy.tokens import Doc
    from spacy.training import Example

    examples = []
    for sentence in sentences:
        gold = as_doc(nlp.vocab, [sentence])
        words = Doc(nlp.vocab, [token.text for token in gold], [bool(token.whitespace_) for token in gold])
        examples.append(Example(words, gold))
    scores = nlp.evaluate(examples)
    return {name: float(scores[name]) for name in MEASURES}
