"""The tensors of google/prompt-to-prompt (reference/make_fixture.py says how they were made) come out here too."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import CLIPTokenizer

from twinset.generators.prompt_to_prompt.attention import LocalBlend
from twinset.generators.prompt_to_prompt.edits import Alignment, Edit, Schedule, Step, align

FIXTURE = safe_open(Path(__file__).parent / "reference/attention_control.safetensors", "pt")
CASES = json.loads(FIXTURE.metadata()["cases"])
AT = json.loads(FIXTURE.metadata()["at"])
STEPS = 10
CPU = torch.device("cpu")


@pytest.mark.parametrize("number", range(len(CASES)))
def test_replacement_and_refinement(words: CLIPTokenizer, number: int) -> None:
    case = CASES[number]
    alignment = align(Edit((case["captions"][0], case["captions"][1]), case["cross"]["default_"], 0.4), words)
    schedule = Schedule([alignment], STEPS)
    source, own = FIXTURE.get_tensor(f"{number}.given")
    expected = FIXTURE.get_tensor(f"{number}.edited")
    compared = ~moved(alignment) if alignment.kind == "replacement" else torch.ones(77, dtype=torch.bool)
    for index, published in zip(AT, expected, strict=True):
        step = schedule.step(index, CPU, torch.float32)
        edited = torch.zeros_like(own) if step.source is None else source @ step.source[0]
        if step.edited is not None or step.source is None:
            edited = edited + own * (1.0 if step.edited is None else step.edited[0])
        torch.testing.assert_close(edited[..., compared], published[..., compared], atol=1e-5, rtol=0)


def moved(alignment: Alignment) -> torch.Tensor:
    """(77,) which tokens of an edited caption a swap moved, by a word that has more or fewer tokens than the source's.

    After the last changed word the published code goes by position, this one by word; and where the caption got
    shorter, it leaves as many paddings at the end without attention.
    """
    source, edited = alignment.captions
    tokens = torch.zeros(edited.length, dtype=torch.bool)
    shorter = len(source.ids) - len(edited.ids)
    if shorter:
        changed = [
            at[-1] for (word, at), (before, _) in zip(edited.words(), source.words(), strict=True) if word != before
        ]
        tokens[changed[-1] + 1 : len(edited.ids)] = True
        tokens[edited.length - max(shorter, 0) :] = True
    return tokens


def test_local_blend(words: CLIPTokenizer) -> None:
    blend = json.loads(FIXTURE.metadata()["blend"])
    captions = (blend["captions"][0], blend["captions"][1])
    edit = Edit(captions, region=(blend["words"][0], blend["words"][1]), blend=True)
    ours = LocalBlend([align(edit, words)], (16, 16), CPU)
    for queries, keys in zip(FIXTURE.get_tensor("blend.queries"), FIXTURE.get_tensor("blend.keys"), strict=True):
        ours.observe(queries, keys, 1.0, Step(None, None, None))
    latents = FIXTURE.get_tensor("blend.latents")
    blended = ours.blend(latents, STEPS - 1, STEPS)
    torch.testing.assert_close(blended, FIXTURE.get_tensor("blend.blended"), atol=1e-5, rtol=0)
    assert 0.02 < (blended[1] == latents[0]).float().mean() < 0.98
