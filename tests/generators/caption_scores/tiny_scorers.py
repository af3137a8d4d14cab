"""The published layouts of the scorers with tiny random weights, and tokenizers made here: nothing is downloaded."""

from collections.abc import Callable
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import torch
from numpy.typing import NDArray
from tokenizers import ByteLevelBPETokenizer, Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, RobertaConfig, T5Config, T5EncoderModel
from transformers import RobertaForSequenceClassification as Roberta

from tests.models.diffusion.tiny_models import save_clip
from twinset.generators.caption_scores.scorers.scorer import CAPTION_SCORERS, ScorerSettings

TEXTS = (
    "A man riding a horse.",
    "A man riding a horse on a very long and quiet beach at night.",
    "A man riding a bike.",
    "A dog.",
    "two Katzen и 猫 🙂",
    "A man",
)
BIAS, TEMPERATURE = 0.25, 2.5
READS = 128  # tokens of the tiny RoBERTa
SIZES: dict[str, Any] = {
    **{"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2},
    # A wide spread of weights: were it narrow, all texts would be about as likely, whatever a token attends to.
    "initializer_range": 0.5,
}


def save_vera(folder: Path) -> Path:
    """A T5 encoder whose embedding holds head, bias and temperature, as ``liujch1998/vera`` has them."""
    torch.manual_seed(0)
    config = T5Config(vocab_size=32128, d_model=8, d_kv=4, d_ff=16, num_layers=2, num_heads=2)
    model = T5EncoderModel(config)
    with torch.no_grad():
        embedding = model.get_input_embeddings().weight
        embedding[32098, 0], embedding[32097, 0] = BIAS, TEMPERATURE
    model.save_pretrained(folder)
    pieces = ["<pad>", "</s>", "<unk>", "▁A", "▁man", "▁riding", "▁a", "▁horse", "▁dog", "▁", *ascii_lowercase, "."]
    words = Tokenizer(models.Unigram([(piece, -float(n)) for n, piece in enumerate(pieces)], unk_id=2))
    words.pre_tokenizer = pre_tokenizers.Metaspace()
    words.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    names = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=words, **names).save_pretrained(folder)
    return folder


def _byte_pairs(*special: str) -> ByteLevelBPETokenizer:
    words = ByteLevelBPETokenizer()
    words.train_from_iterator(TEXTS * 3, vocab_size=300, show_progress=False, special_tokens=list(special))
    return words


def save_cola(folder: Path) -> Path:
    """RoBERTa as ``textattack/roberta-base-CoLA``: ``pytorch_model.bin``, ``vocab.json`` and ``merges.txt``."""
    torch.manual_seed(1)
    folder.mkdir(parents=True)
    words = _byte_pairs("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    words.save_model(str(folder))
    config = RobertaConfig(vocab_size=words.get_vocab_size(), max_position_embeddings=READS + 2, **SIZES)
    config.architectures = ["RobertaForSequenceClassification"]
    config.save_pretrained(folder)
    torch.save(Roberta(config).state_dict(), folder / "pytorch_model.bin")
    return folder


#: Of each kind of scorer, how its tiny model is saved.
MODELS: dict[str, Callable[[Path], Path]] = {"clip": save_clip, "cola": save_cola, "vera": save_vera}


def settings(kind: str, folder: Path) -> ScorerSettings:
    return CAPTION_SCORERS.find(kind).model_validate({"kind": kind, "model": str(folder)})


def scored(kind: str, folder: Path) -> NDArray[Any]:
    with torch.inference_mode():
        return settings(kind, folder).open("cpu")(TEXTS, 4)
