"""Relations of captions: one pass of spaCy over many, and `sng_parser`'s rules on the documents that it gives.

GeneCIS (section 5.2) takes "subject -> predicate -> object" from captions with an off-the-shelf parser, `sng_parser`.
Its release 0.1.0 runs spaCy on one caption at a time, which is most of its time. Here `nlp.pipe` parses them in batches
and the rules are given ready documents; the relations are those of ``sng_parser.parse(caption)``, caption by caption.

Pipelines are found by name or path, without any download.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from manifests.canonical import sha256_of_file
from manifests.errors import WrongUse

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

EMBEDDED = "en_captions_sm"  # the default
ALL_EMBEDDED = (EMBEDDED, "en_ewt_sm")  # the pipelines that come with twinset: CREDITS.md
LIBRARIES = ("spacy", "thinc", "blis", "numpy", "SceneGraphParser")  # what the relations depend on, besides pyarrow

_REMEDY = (
    f"name an installed package (pip install it first; nothing is downloaded here), the folder of a pipeline, or one "
    f"that comes with twinset: {', '.join(ALL_EMBEDDED)}"
)

BATCH = 128  # captions a call of the network
ZONE = 4096  # captions after which spaCy forgets the words that it met, which would fill the memory


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline by name. source: where spaCy finds it, the name of a package or a folder. digest: blake2b over
    names and sha256 of all files below its folder, in order.

    torch: whether it may need PyTorch; False where all of its networks are spaCy's own.
    """

    name: str
    source: str
    digest: str
    torch: bool


def find_pipeline(name: str = EMBEDDED) -> Pipeline:
    """The pipeline called so: one of `ALL_EMBEDDED`, an installed package, or a folder, in this order.

    Raises `WrongUse` when there is none.
    """
    if name in ALL_EMBEDDED:
        folder = Path(__file__).parent / name
        return _pipeline(name, str(folder), folder)
    if name.isidentifier() and (spec := importlib.util.find_spec(name)) is not None and spec.origin is not None:
        return _pipeline(name, name, Path(spec.origin).parent)
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.cfg").is_file() or not (folder / "meta.json").is_file():
            raise WrongUse(f"pipeline {name}: not a spaCy pipeline, which has a config.cfg and a meta.json; {_REMEDY}")
        return _pipeline(name, str(folder.resolve()), folder)
    raise WrongUse(f"pipeline {name}: neither an installed package nor a folder; {_REMEDY}")


def check_pipeline(name: str, nlp: Language) -> None:
    """Raise `WrongUse` when a pipeline lacks what scene graphs need: dependencies, parts of speech, lemmas, chunks."""
    doc = nlp("A woman is playing the piano in the room.")
    needed = {"DEP": "dependencies", "POS": "parts of speech", "LEMMA": "lemmas"}
    missing = [words for attribute, words in needed.items() if not doc.has_annotation(attribute)]
    if nlp.vocab.get_noun_chunks is None:
        missing.append(f"noun chunks of its language, {nlp.lang}")
    if missing:
        raise WrongUse(f"pipeline {name}: gives no {', no '.join(missing)}; {_REMEDY}")


def import_spacy_alone() -> None:
    """Import spaCy without PyTorch, in a process that needs only the one: thinc imports it wherever it is installed,
    which costs 3 s and 500 MB a process."""
    if "torch" in sys.modules or "spacy" in sys.modules:
        return
    modules = cast(dict[str, Any], sys.modules)
    modules["torch"] = None
    try:
        import spacy  # noqa: F401
    finally:
        del modules["torch"]


def _pipeline(name: str, source: str, folder: Path) -> Pipeline:
    settings = "\n".join(path.read_text("utf-8", "replace") for path in sorted(folder.rglob("config.cfg")))
    networks = re.findall(r'^@architectures *= *"([^"]*)"', settings, re.MULTILINE)
    torch = any(not network.startswith("spacy.") or "torch" in network.lower() for network in networks)
    hashed = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:  # what Python compiled is no part of it
            hashed.update(f"{path.relative_to(folder).as_posix()}\0{sha256_of_file(path)[0]}\n".encode())
    return Pipeline(name, source, hashed.hexdigest(), torch)


class Relation(NamedTuple):
    """One relation of a caption, with surface words and lemmas exactly as `sng_parser` gives them.

    subject, object: head nouns, with what is compounded to them. start, end: where their noun phrases stand in the
    caption, as characters from and to.
    """

    subject: str
    predicate: str
    object: str
    subject_lemma: str
    predicate_lemma: str
    object_lemma: str
    subject_start: int
    subject_end: int
    object_start: int
    object_end: int


class SceneGraphParser:
    """Parses captions in batches, with one pipeline loaded once.

    nlp: the pipeline, as it comes from spaCy.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        """Raises `WrongUse` when the pipeline cannot be loaded or lacks what the rules need."""
        import sng_parser

        try:
            parser = sng_parser.Parser("spacy", model=pipeline.source)
        except (ImportError, OSError, ValueError) as error:
            why = error.__cause__ or error
            raise WrongUse(f"pipeline {pipeline.name}: spaCy cannot load it ({why}); install it again") from error
        backend = parser.unwrapped
        self.nlp: Language = backend.nlp
        check_pipeline(pipeline.name, self.nlp)
        # The rules begin with `doc = self.nlp(sentence)`: now they are given the document itself.
        backend.nlp = _ready
        self._rules = backend.parse

    def relations(self, captions: Sequence[str]) -> Iterator[list[Relation]]:
        """The relations of each caption, in order."""
        for start in range(0, len(captions), ZONE):
            with self.nlp.memory_zone():
                docs = self.nlp.pipe(captions[start : start + ZONE], batch_size=BATCH)
                zone = [_relations(doc, self._rules(doc)) for doc in docs]
            yield from zone

    def graphs(self, captions: Sequence[str]) -> list[tuple[Doc, Mapping[str, Any]]]:
        """The document of each of a few captions, and what `sng_parser` makes of it."""
        return [(doc, self._rules(doc)) for doc in self.nlp.pipe(captions, batch_size=BATCH)]


@cache
def parser_of(pipeline: Pipeline) -> SceneGraphParser:
    """The parser with a pipeline, loaded once a process."""
    if not pipeline.torch:
        import_spacy_alone()
    return SceneGraphParser(pipeline)


def _ready(doc: Doc) -> Doc:
    return doc


def _relations(doc: Doc, graph: dict[str, Any]) -> list[Relation]:
    entities = graph["entities"]
    found = []
    for relation in graph["relations"]:
        subject, object_ = entities[relation["subject"]], entities[relation["object"]]
        words = subject["head"], relation["relation"], object_["head"]
        lemmas = subject["lemma_head"], relation["lemma_relation"], object_["lemma_head"]
        spans = doc[slice(*subject["span_bounds"])], doc[slice(*object_["span_bounds"])]
        found.append(Relation(*words, *lemmas, *(at for span in spans for at in (span.start_char, span.end_char))))
    return found
