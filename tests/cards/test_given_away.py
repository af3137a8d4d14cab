"""What a card says that captions tell without the images."""

import io
import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from tests import made_samples
from tests.cards.made_cards import described, small_card
from tests.generators.words_alone.test_probe import captions
from tests.made_datasets import MadeDataset
from tests.made_samples import NEGATIVE_SUBSET
from twinset.cards.describe import describe
from twinset.cards.kinds.kind import IndexSummary


def test_the_card_flags_kinds_that_are_solved_blind(made: MadeDataset) -> None:
    pairs = [one for shard in made_samples.text_pair_shards("text") for one in shard if hasattr(one.made, "caption")]
    plan = []
    for number in range(60):
        type_ = ("add", "swap")[number % 2]
        said = {"caption": "a red disc", "negative_caption": "a red disc, big" if type_ == "add" else "disc red a"}
        about = {"key": f"text-{number:016d}", "group": f"{number // 3}.jpg", "type": type_, "subtype": "obj"}
        plan.append(replace(pairs[0], made=replace(pairs[0].made, **said, **about), group=about["group"]))
    made.add("text", NEGATIVE_SUBSET, [plan])
    text = described(made, "text")
    assert (
        "* **Length: the true caption can be guessed in 75.0% of all pairs and in 100.0% of the pairs of one kind "
        "(chance: 50 %).** Of all pairs, the caption" in text
    )
    assert (
        "shorter is it in 75.0% (95 % interval\n" in text
        and "Of `add obj`, the caption that is shorter is it in 100.0%" in text
    )
    assert "`swap obj`" not in text and "| **100.0%** |" in text
    assert (
        "* **Order of words: 30 pairs (50.0 %) ask for it.** In these alone both captions are made of the same" in text
    )


def test_few_pairs_tell_nothing_of_words(made_pairs: MadeDataset) -> None:
    few, enough = small_card(made_pairs, kept=11), small_card(made_pairs, kept=12)
    assert (
        "* **Single words: too few pairs to say.** There are 11; it takes 12 with one word, always on the same" in few
    )
    assert (
        "none stands on one side more often than chance explains** (sign test of each word, p < 0.001 after" in enough
    )


def test_cards_say_what_words_alone_tell(made: MadeDataset, made_text_pairs: MadeDataset) -> None:
    few = described(made_text_pairs, "text")
    assert "* **All words together: not measured.** A model of the words needs 100 pairs of a kind" in few
    assert "both captions: right" not in few
    made.add("negatives", {"source": {"kind": "test-scores"}}, [])
    pairs = captions(150, 0)
    texts = dict(zip(("caption", "negative_caption"), (list(side) for side in zip(*pairs, strict=True)), strict=True))
    index = io.BytesIO()
    pq.write_table(pa.table({**texts, "type": ["replace"] * 150, "subtype": ["att"] * 150}), index)
    made.store.write("negatives/_meta/index.parquet", index.getvalue())
    describe(made.store, "negatives", IndexSummary(150, 150, {}, {}, {"test": 150}, 1, {}, 0))
    row = re.search(r"\| replace att \| 150 \| (0\.\d\d) \| (\d+)% \|", made.text("negatives/README.md"))
    said = re.search(r"a model of the words is right in (\d+) % of the pairs", made.text("negatives/README.md"))
    assert said is not None and row is not None and said[1] == row[2]
    assert 0.3 < float(row[1]) < 0.7 and 35 < int(row[2]) < 65
