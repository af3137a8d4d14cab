"""What the pipeline is trained on: a treebank, rewritten sentences of it, a grammar's captions, and agreed parses."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from studies.caption_parser.agreement import agreed
from studies.caption_parser.conversion import read_treebank
from studies.caption_parser.grammar import captions as captions_of_grammar
from studies.caption_parser.rewriting import rewritten
from studies.caption_parser.trees import Sentence
from twinset.contracts.errors import WrongUse
from twinset.generators.captions.sources import CaptionSources
from twinset.generators.captions.tables import Caption
from twinset.models.spacy_pipelines import find_pipeline


@dataclass(frozen=True, slots=True)
class CorpusSettings:
    """Where sentences come from.

    treebank: folder of a UD treebank. grammar: captions of the grammar. captions: files that `twinset parse` reads, or
    none. parsers: the two pipelines that must agree on their trees. seed: of everything that is random.
    """

    treebank: Path
    grammar: int
    captions: tuple[Path, ...]
    parsers: tuple[str, str]
    seed: int


def part(treebank: Path, name: str) -> list[Sentence]:
    """The converted sentences of ``train``, ``dev`` or ``test`` of a treebank.

    Raises `WrongUse` when the folder does not hold one file of that part.
    """
    found = sorted(treebank.glob(f"*-ud-{name}.conllu"))
    if len(found) != 1:
        raise WrongUse(f"{treebank}: {len(found)} files *-ud-{name}.conllu; give the folder of one UD English treebank")
    return list(read_treebank(found[0]))


def training_sentences(settings: CorpusSettings) -> dict[str, list[Sentence]]:
    """Sentences by where they come from."""
    treebank = part(settings.treebank, "train")
    found = {
        "treebank": treebank,
        "rewritten": list(rewritten(treebank, random.Random(settings.seed))),
        "grammar": list(captions_of_grammar(settings.grammar, settings.seed)),
    }
    if settings.captions:
        found["agreed"] = list(_agreed(settings))
    return found


def _agreed(settings: CorpusSettings) -> Iterator[Sentence]:
    import spacy

    first, second = (spacy.load(find_pipeline(name).source) for name in settings.parsers)
    read = CaptionSources(settings.captions).read()
    texts = sorted({one.caption.strip() for one in read if isinstance(one, Caption)})
    return agreed(texts, first, second)
