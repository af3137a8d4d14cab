import pytest
import torch
from transformers import CLIPTokenizer

from twinset.generators.prompt_to_prompt.alignment import Edit, EditError, Tokens, align, equalizer, replaced_steps

SWAP = ("a photo of a cat on the soup", "a photo of a dog on the soup")
LONGER = ("a cat eating soup", "a giraffe eating soup")  # giraffe: 7 tokens
ADDED = ("a photo of a cat", "a photo of a red cat in the winter")


def sources_of(alignment_source: torch.Tensor, tokens: list[int]) -> list[list[int]]:
    return [alignment_source[:, token].nonzero()[:, 0].tolist() for token in tokens]


def test_tokens_know_their_words_by_offset(words: CLIPTokenizer) -> None:
    tokens = Tokens.of("A photo of a  Giraffe, eating soup.", words)
    assert [len(positions) for _, positions in tokens.words()] == [1, 1, 1, 1, 8, 1, 2]
    assert tokens.of_word("giraffe") == [5, 6, 7, 8, 9, 10, 11]
    assert tokens.of_word("soup") == [14]
    assert tokens.of_word("a") == [1, 4]


def test_a_swapped_word_takes_the_source_words_place(words: CLIPTokenizer) -> None:
    alignment = align(SWAP, words)
    assert alignment.kind == "replacement"
    assert torch.equal(alignment.source, torch.eye(77))
    assert not alignment.edited.any()


def test_a_longer_word_shares_the_source_words_attention_and_the_rest_follows_its_words(words: CLIPTokenizer) -> None:
    alignment = align(LONGER, words)
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
    alignment = align((LONGER[1], LONGER[0]), words)
    source, edited = alignment.captions
    assert sources_of(alignment.source, edited.of_word("cat")) == [source.of_word("giraffe")]
    assert sources_of(alignment.source, edited.of_word("soup")) == [source.of_word("soup")]


def test_added_words_keep_their_own_attention(words: CLIPTokenizer) -> None:
    alignment = align(ADDED, words)
    source, edited = alignment.captions
    new = edited.of_word("red") + edited.of_word("in the winter")
    assert alignment.kind == "refinement"
    assert alignment.edited.nonzero()[:, 0].tolist() == new
    assert not alignment.source[:, new].any()
    assert sources_of(alignment.source, edited.of_word("cat")) == [source.of_word("cat")]
    assert torch.equal(alignment.source.sum(0) + alignment.edited, torch.ones(77))


def test_removed_words_leave_the_others_aligned(words: CLIPTokenizer) -> None:
    alignment = align((ADDED[1], ADDED[0]), words)
    source, edited = alignment.captions
    assert sources_of(alignment.source, edited.of_word("cat")) == [source.of_word("cat")]
    assert not alignment.edited.any()


def test_equal_captions_align_one_to_one(words: CLIPTokenizer) -> None:
    assert torch.equal(align((SWAP[0], SWAP[0]), words).source, torch.eye(77))


def test_a_caption_that_the_model_would_cut_is_refused(words: CLIPTokenizer) -> None:
    with pytest.raises(EditError, match="has 80 tokens, the model reads 77: shorten it"):
        align(("a cat", "a " * 78), words)


def test_words_have_their_own_steps_and_factors(words: CLIPTokenizer) -> None:
    edit = Edit(SWAP, cross_replace_steps=1.0, word_replace_steps={"dog": 0.4}, weights={"soup": -2.0})
    alignment = align(SWAP, words)
    (dog,), (soup,) = alignment.captions[1].of_word("dog"), alignment.captions[1].of_word("soup")
    replaced = replaced_steps(edit, alignment, steps=10)
    assert replaced[:, dog].tolist() == [1.0] * 4 + [0.0] * 6  # int(0.4 * 11)
    assert replaced[:, soup].all()
    assert equalizer(edit, alignment).tolist() == [-2.0 if at == soup else 1.0 for at in range(77)]
