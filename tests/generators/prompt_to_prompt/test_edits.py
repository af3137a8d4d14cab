"""Edits: alignment, injection against its definition, and the tensors of google/prompt-to-prompt.

Fused injection equals probabilities made, edited and used. Of each case reference/attention_control.safetensors holds
random probabilities of a source and an edited image, (2, heads, pixels, tokens), and at some steps those that the
published controllers make of the edited ones. Commit 5f82e2b5 has the script that ran them, `make_fixture.py`.
"""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import CLIPTokenizer

from twinset.generators.prompt_to_prompt.attention import Injection
from twinset.generators.prompt_to_prompt.edits import Edit, Schedule, align

EDITS = [
    Edit(("a cat eating soup", "a giraffe eating soup"), 0.5, 0.4),
    Edit(("a photo of a cat", "a photo of a red cat in the winter"), 0.8, 0.0),
    Edit(("a cat", "a dog"), 0.0, 0.0),
    Edit(("a red circle", "a blue circle"), 1.0, 1.0),
    Edit(("a cat", "a cat in the winter"), 0.4, 0.0),
]
N, HEADS, PIXELS, WIDTH, STEPS = len(EDITS), 3, 16, 8, 10
SCALE = WIDTH**-0.5
CPU = torch.device("cpu")


def random(rows: int, tokens: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, HEADS, tokens, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("guided", [True, False])
@pytest.mark.parametrize("index", [0, 3, 6, 9])
def test_cross_attention(words: CLIPTokenizer, index: int, guided: bool) -> None:
    alignments = [align(edit, words) for edit in EDITS]
    rows = 4 * N if guided else 2 * N
    q, k, v = random(rows, PIXELS, 1), random(rows, 77, 2), random(rows, 77, 3)
    injection = Injection(N, 256)
    injection.step = Schedule(alignments, STEPS).step(index, CPU, torch.float64)
    fused = injection.cross_attention(q, k, v, SCALE)

    probabilities = (q @ k.transpose(2, 3) * SCALE).softmax(-1)
    for n, (edit, alignment) in enumerate(zip(EDITS, alignments, strict=True)):
        own, source = probabilities[rows - N + n].clone(), probabilities[rows - 2 * N + n]
        if index < int(edit.cross_replace_steps * (STEPS + 1)):
            probabilities[rows - N + n] = source @ alignment.source.double() + own * alignment.edited
    torch.testing.assert_close(fused, probabilities @ v, atol=1e-6, rtol=0)


def test_self_attention_takes_the_sources_maps_where_and_when_asked(words: CLIPTokenizer) -> None:
    schedule = Schedule([align(edit, words) for edit in EDITS], STEPS)
    q, k, v = (random(4 * N, PIXELS, seed) for seed in (1, 2, 3))
    probabilities = (q @ k.transpose(2, 3) * SCALE).softmax(-1)
    own = probabilities @ v
    for index, taken in ((0, [True, False, False, True, False]), (5, [False, False, False, True, False])):
        expected = own.clone()
        for n in range(N):
            if taken[n]:
                expected[3 * N + n] = probabilities[2 * N + n] @ v[3 * N + n]
        injection = Injection(N, PIXELS)
        injection.step = schedule.step(index, CPU, torch.float64)
        torch.testing.assert_close(injection.self_attention(q, k, v, SCALE), expected)
        injection.max_self_tokens = PIXELS - 1
        torch.testing.assert_close(injection.self_attention(q, k, v, SCALE), own)


def test_a_longer_word_shares_the_source_words_attention_and_the_rest_follows_its_words(words: CLIPTokenizer) -> None:
    alignment = align(Edit(("a cat eating soup", "a giraffe eating soup")), words)
    source, edited = (dict(caption.words()) for caption in alignment.captions)
    assert len(edited["giraffe"]) == 7
    assert alignment.source[source["cat"]][:, edited["giraffe"]].tolist() == [pytest.approx([1 / 7] * 7)]
    for word in ("a", "eating", "soup"):
        (token,) = edited[word]
        assert alignment.source[:, token].nonzero().tolist() == [[*source[word]]]


FIXTURE = safe_open(Path(__file__).parent / "reference/attention_control.safetensors", "pt")
CASES = json.loads(FIXTURE.metadata()["cases"])
AT = json.loads(FIXTURE.metadata()["at"])


@pytest.mark.parametrize("number", range(len(CASES)))
def test_replacement_and_refinement(words: CLIPTokenizer, number: int) -> None:
    case = CASES[number]
    alignment = align(Edit((case["captions"][0], case["captions"][1]), case["cross"]["default_"], 0.4), words)
    schedule = Schedule([alignment], STEPS)
    source, own = FIXTURE.get_tensor(f"{number}.given")
    expected = FIXTURE.get_tensor(f"{number}.edited")
    first, second = alignment.captions
    # After a word of more tokens than the source's, the published code goes by position, this one by word.
    shifted = alignment.kind == "replacement" and len(first.ids) != len(second.ids)
    compared = slice(dict(second.words())["giraffe"][-1] + 1 if shifted else None)
    for index, published in zip(AT, expected, strict=True):
        step = schedule.step(index, CPU, torch.float32)
        edited = torch.zeros_like(own) if step.source is None else source @ step.source[0]
        if step.edited is not None or step.source is None:
            edited = edited + own * (1.0 if step.edited is None else step.edited[0])
        torch.testing.assert_close(edited[..., compared], published[..., compared], atol=1e-5, rtol=0)
