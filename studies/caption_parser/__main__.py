"""Trains a small pipeline for captions.

python -m studies.caption_parser UD_English-EWT --captions captions.json --parsers en_ewt_sm en_core_web_sm --to OUT
"""

import argparse
import sys
import tempfile
from pathlib import Path

from studies.caption_parser.corpus import CorpusSettings, part, training_sentences
from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.models.spacy_pipelines import find_pipeline
from twinset.shards.storage.whole_file import atomic_folder

_PARSERS = ("en_ewt_sm", "en_core_web_sm")


def main() -> int:
    """Train, save and measure."""
    parser = argparse.ArgumentParser(prog="python -m studies.caption_parser", description=__doc__.splitlines()[0])
    parser.add_argument("treebank", type=Path, help="folder of Universal Dependencies' English EWT")
    parser.add_argument("--to", type=Path, required=True, help="folder of the new pipeline")
    parser.add_argument("--captions", type=Path, nargs="*", default=[], help="captions that two parsers may agree on")
    parser.add_argument(
        "--parsers", nargs=2, default=("en_ewt_sm", "en_core_web_sm"), help="those two, by name or folder"
    )
    parser.add_argument("--grammar", type=int, default=18_000, help="captions of the grammar")
    parser.add_argument("--start", help="pipeline to go on from, by name or folder; without it from random weights")
    parser.add_argument("--steps", type=int, default=6_000, help="batches of about 1,000 words")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    settings = CorpusSettings(
        given.treebank, given.grammar, tuple(given.captions), (given.parsers[0], given.parsers[1]), given.seed
    )
    try:
        return _make(settings, given.to, given.start, given.steps)
    except TwinsetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, WrongUse) else 1


def _make(settings: CorpusSettings, to: Path, start: str | None, steps: int) -> int:
    from studies.caption_parser.pipeline import measure, train

    if to.exists():
        raise WrongUse(f"{to}: exists already; name another folder")
    if start is not None:
        find_pipeline(start)
    dev, test = (part(settings.treebank, name) for name in ("dev", "test"))  # which fail before hours of training
    sentences = training_sentences(settings)
    for name, found in sentences.items():
        print(f"{name}: {len(found):,} sentences, {sum(map(len, found)):,} words", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        nlp = train(sentences, dev[:500], Path(scratch), steps, settings.seed, start)
        with atomic_folder(to, "free some room, or name another --to, and train again") as unfinished:
            nlp.to_disk(unfinished)
    for name, value in measure(nlp, test).items():
        print(f"{name} {value:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
