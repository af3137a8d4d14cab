"""A language model with a real architecture, random weights and a tokenizer of its own, saved as models are."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from twinset.generators.negative_captions.asking import FILE

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MARKS = ["<|end|>", "<|user|>", "<|assistant|>"]


def save(folder: Path, length: int = 4096, template: str | None = TEMPLATE) -> Path:
    """Write it into a folder. length: tokens that it reads."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = BpeTrainer(vocab_size=1500, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([FILE.read_text("utf-8")], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", chat_template=template)
    fast.add_special_tokens({"additional_special_tokens": MARKS[1:]})
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    words = {"vocab_size": len(fast), "eos_token_id": fast.eos_token_id, "max_position_embeddings": length}
    config = LlamaConfig(**shape, **words, num_key_value_heads=2, initializer_range=0.2)
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
