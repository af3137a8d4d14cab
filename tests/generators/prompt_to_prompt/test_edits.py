"""Edits: words, alignment, and fused injection against its definition: probabilities made, edited and used."""

from dataclasses import replace

import pytest
import torch
from transformers import CLIPTokenizer

from tests.models.diffusion.tiny_models import CHANNELS_14, unet_14, unet_xl
from twinset.generators.prompt_to_prompt.attention import Injection, LocalBlend, cross_attention_sizes
from twinset.generators.prompt_to_prompt.edits import Alignment, Edit, EditError, Schedule, Tokens, align, occurrences

CAPTIONS = ("A photo of a cat.", "A photo of a dog, a big Dog.")


def test_words_are_found_whole_in_any_case_and_before_punctuation() -> None:
    assert [CAPTIONS[1][slice(*span)] for span in occurrences(CAPTIONS[1], "dog")] == ["dog", "Dog"]
    assert occurrences(CAPTIONS[0], "photo of") == [(2, 10)]
    with pytest.raises(EditError, match="'pho' is not a word of the caption"):
        occurrences(CAPTIONS[0], "pho")


def test_an_edit_that_cannot_be_made_says_why() -> None:
    with pytest.raises(EditError, match="self_replace_steps is nan"):
        Edit(CAPTIONS, self_replace_steps=float("nan"))
    with pytest.raises(EditError, match="'dog' is not a word of the caption 'A photo of a cat"):
        Edit(CAPTIONS, region=("dog", "dog"))


EDITS = [
    Edit(("a cat eating soup", "a giraffe eating soup"), 0.5, 0.4),
    Edit(("a photo of a cat", "a photo of a red cat in the winter"), 0.8, 0.0),
    Edit(("a cat", "a dog"), 0.0, 0.0),
    Edit(("a red circle", "a blue circle"), 1.0, 1.0, region=("red", "blue"), blend=True),
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
    injection = Injection(N, 256, LocalBlend(alignments, (4, 4), CPU))
    injection.step = Schedule(alignments, STEPS).step(index, CPU, torch.float64)
    fused = injection.cross_attention(q, k, v, SCALE)

    probabilities = (q @ k.transpose(2, 3) * SCALE).softmax(-1)
    for n, (edit, alignment) in enumerate(zip(EDITS, alignments, strict=True)):
        own, source = probabilities[rows - N + n].clone(), probabilities[rows - 2 * N + n]
        if index < int(edit.cross_replace_steps * (STEPS + 1)):
            probabilities[rows - N + n] = source @ alignment.source.double() + own * alignment.edited
    torch.testing.assert_close(fused, probabilities @ v, atol=1e-6, rtol=0)
    assert injection.blend is not None
    for side, word in enumerate(("red", "blue")):
        (token,) = alignments[3].captions[side].of_word(word)
        of_word = probabilities[rows - (2 - side) * N + 3, :, :, token].mean(0).reshape(4, 4)
        torch.testing.assert_close(injection.blend.maps[side, 3], of_word.float(), atol=1e-5, rtol=0)


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
        injection = Injection(N, PIXELS, None)
        injection.step = schedule.step(index, CPU, torch.float64)
        torch.testing.assert_close(injection.self_attention(q, k, v, SCALE), expected)
        injection.max_self_tokens = PIXELS - 1
        torch.testing.assert_close(injection.self_attention(q, k, v, SCALE), own)


def test_local_blend_keeps_what_is_outside_the_words_attention(words: CLIPTokenizer) -> None:
    alignments = [align(edit, words) for edit in EDITS]
    blend = LocalBlend(alignments, (4, 4), CPU)
    q, k = random(4 * N, PIXELS, 1).float(), random(4 * N, 77, 2).float()
    (red,) = alignments[3].captions[0].of_word("red")
    (blue,) = alignments[3].captions[1].of_word("blue")
    q[:, :, :, 0], k[:, :, :, 0] = 0.0, 0.0
    q[:, :, 0, 0], k[2 * N + 3, :, red, 0], k[3 * N + 3, :, blue, 0] = 40.0, 40.0, 40.0  # all at the upper left pixel
    blend.observe(q, k, SCALE, Schedule(alignments, STEPS).step(9, CPU, torch.float32))
    masks = blend.masks((8, 8))
    assert masks[:3].all()  # no blend was asked for there
    assert masks[3].nonzero().amax(0).tolist() == [3, 3]  # a pixel wider, at twice the size
    latents = random(2 * N, 64, 5).float().reshape(2 * N, -1, 8, 8)
    blended = blend.blend(latents, 9, STEPS)
    assert torch.equal(blended[: N + 3], latents[: N + 3])
    assert torch.equal(blended[N + 4], latents[N + 4])
    assert torch.equal(blended[N + 3], torch.where(masks[3], latents[N + 3], latents[3]))
    assert torch.equal(blend.blend(latents, 1, STEPS), latents)  # too early
    alignments[3] = replace(alignments[3], edit=replace(EDITS[3], blend=False))
    region = LocalBlend(alignments, (4, 4), CPU)
    region.observe(q, k, SCALE, Schedule(alignments, STEPS).step(9, CPU, torch.float32))
    assert torch.equal(region.masks((8, 8)), masks) and torch.equal(region.blend(latents, 9, STEPS), latents)


def test_the_random_unets_are_built_as_the_real_ones() -> None:
    """At the real widths they have the published numbers of parameters, 860 million and 2.6 billion."""
    with torch.device("meta"):
        unet = unet_14(CHANNELS_14, context=768)
        xl = unet_xl((320, 640, 1280), heads=(5, 10, 20), context=2048, pooled=1280, sizes=256, groups=32)
    assert unet.num_parameters() == 859_520_964
    assert xl.num_parameters() == 2_567_463_684
    assert cross_attention_sizes(unet, 64, 64) == [(64, 64), (32, 32), (16, 16), (8, 8)]
    assert cross_attention_sizes(unet, 7, 12) == [(7, 12), (4, 6), (2, 3), (1, 2)]
    assert cross_attention_sizes(xl, 128, 128) == [(64, 64), (32, 32)]


LONGER = ("a cat eating soup", "a giraffe eating soup")  # giraffe: 7 tokens


def aligned(captions: tuple[str, str], words: CLIPTokenizer) -> Alignment:
    return align(Edit(captions), words)


def sources_of(alignment_source: torch.Tensor, tokens: list[int]) -> list[list[int]]:
    return [alignment_source[:, token].nonzero()[:, 0].tolist() for token in tokens]


def test_tokens_know_their_words_by_offset(words: CLIPTokenizer) -> None:
    tokens = Tokens.of("A photo of a  Giraffe, eating soup.", words)
    assert [len(positions) for _, positions in tokens.words()] == [1, 1, 1, 1, 8, 1, 2]
    assert tokens.of_word("giraffe") == [5, 6, 7, 8, 9, 10, 11]
    assert tokens.of_word("soup") == [14]
    assert tokens.of_word("a") == [1, 4]


def test_a_longer_word_shares_the_source_words_attention_and_the_rest_follows_its_words(words: CLIPTokenizer) -> None:
    alignment = aligned(LONGER, words)
    source, edited = alignment.captions
    giraffe, cat = edited.of_word("giraffe"), source.of_word("cat")
    assert len(giraffe) == 7
    assert alignment.source[cat][:, giraffe].tolist() == [pytest.approx([1 / 7] * 7)]
    for word in ("a", "eating", "soup"):
        assert sources_of(alignment.source, edited.of_word(word)) == [source.of_word(word)]
    assert sources_of(alignment.source, [len(edited.ids) - 1, len(edited.ids)]) == [
        [len(source.ids) - 1],
        [len(edited.ids)],
    ]


def test_a_shorter_word_takes_all_its_tokens_attention(words: CLIPTokenizer) -> None:
    alignment = aligned((LONGER[1], LONGER[0]), words)
    source, edited = alignment.captions
    assert sources_of(alignment.source, edited.of_word("cat")) == [source.of_word("giraffe")]
    assert sources_of(alignment.source, edited.of_word("soup")) == [source.of_word("soup")]


def test_a_caption_that_the_model_would_cut_is_refused(words: CLIPTokenizer) -> None:
    with pytest.raises(EditError, match="has 80 tokens, the model reads 77: shorten it"):
        aligned(("a cat", "a " * 78), words)
