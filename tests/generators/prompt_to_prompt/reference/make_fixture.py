"""Makes attention_control.safetensors: what google/prompt-to-prompt computes, for test_edits.py to compare.

    git clone https://github.com/google/prompt-to-prompt
    python -m tests.generators.prompt_to_prompt.reference.make_fixture prompt-to-prompt

None of its code is kept here. Its controllers live in ``prompt-to-prompt_stable.ipynb`` and need no model: the one
code cell that defines ``AttentionReplace`` is executed, with the names that it expects from earlier cells set to what
follows (its imports, a device, a tokenizer, 77 words). ``ptp_utils`` and ``seq_aligner`` come from the checkout,
without the notebook display that they import. Each case holds the random probabilities of a source and an edited image
(2, heads, pixels, tokens) and those that the controller's ``forward`` makes of the edited ones, at some steps.

The tensors kept here are of a longer list of cases, less those of what twinset does not have (re-weighting, steps by
word, local blend): a new run draws other random numbers.
"""

import abc
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file

from tests.models.diffusion.tiny_models import TOKENS, tokenizer

FIXTURE = Path(__file__).parent / "attention_control.safetensors"
HEADS, PIXELS, STEPS = 2, 4, 10
AT = (0, 3, 7, 9)  # steps
CASES: list[dict[str, Any]] = [
    {"captions": ["a photo of a cat on the soup", "a photo of a dog on the soup"], "cross": {"default_": 0.8}},
    {"captions": ["a giraffe in the red soup", "a gorilla in the blue soup"], "cross": {"default_": 0.8}},
    {"captions": ["a cat eating soup", "a giraffe eating soup"], "cross": {"default_": 0.8}},
    {"captions": ["a photo of a cat", "a photo of a red cat in the winter"], "cross": {"default_": 0.5}},
    {"captions": ["a red cat in the winter", "a cat"], "cross": {"default_": 0.8}},
]


def random_probabilities(random: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    scores = random.standard_normal(shape)
    weights = np.exp(2 * scores)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def import_from(checkout: Path) -> None:
    """``ptp_utils`` and ``seq_aligner`` can be imported, without IPython and tqdm's notebook part."""
    shown = {name: ModuleType(name) for name in ("IPython", "IPython.display", "tqdm.notebook")}
    vars(shown["IPython.display"])["display"] = print
    vars(shown["tqdm.notebook"])["tqdm"] = iter
    sys.modules.update(shown)
    sys.path.insert(0, str(checkout))


def controllers(checkout: Path, words: Any) -> SimpleNamespace:
    """The names that the notebook's cell of controllers defines."""
    import ptp_utils  # type: ignore[import-not-found]
    import seq_aligner  # type: ignore[import-not-found]

    notebook = json.loads((checkout / "prompt-to-prompt_stable.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    (cell,) = [cell for cell in cells if "class AttentionReplace" in cell]
    names: dict[str, Any] = {"__name__": "controllers"}
    exec("from typing import *", names)
    names |= {"torch": torch, "nnf": torch.nn.functional, "np": np, "abc": abc}
    names |= {"ptp_utils": ptp_utils, "seq_aligner": seq_aligner, "device": torch.device("cpu"), "tokenizer": words}
    names |= {"LOW_RESOURCE": False, "NUM_DIFFUSION_STEPS": STEPS, "MAX_NUM_WORDS": TOKENS}
    exec(cell, names)
    return SimpleNamespace(**names)


def controller(published: SimpleNamespace, case: dict[str, Any]) -> Any:
    captions, cross = case["captions"], dict(case["cross"])
    same_words = len({len(caption.split()) for caption in captions}) == 1
    kind = published.AttentionReplace if same_words else published.AttentionRefine
    return kind(captions, STEPS, cross, 0.4)


def main(checkout: Path) -> None:
    random = np.random.default_rng(2208)
    arrays: dict[str, NDArray[Any]] = {}
    import_from(checkout)
    with TemporaryDirectory() as folder:
        published = controllers(checkout, tokenizer(Path(folder)))
        for number, case in enumerate(CASES):
            given = random_probabilities(random, 2, HEADS, PIXELS, TOKENS)
            made = []
            for step in AT:
                edit = controller(published, case)
                edit.cur_step = step
                out = edit.forward(torch.from_numpy(given).flatten(0, 1).clone(), True, "down")
                made.append(out.reshape(given.shape)[1].numpy())
            arrays |= {f"{number}.given": given, f"{number}.edited": np.stack(made)}

    save_file(arrays, FIXTURE, {"cases": json.dumps(CASES), "at": json.dumps(AT)})
    print(f"{FIXTURE.name}: {FIXTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
