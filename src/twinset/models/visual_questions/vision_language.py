"""Multimodal language models of transformers in this process: how likely answers are after images and a prompt.

An image goes through the network once for all texts that follow it: the pass up to its last token fills a cache of keys
and values, from which each text goes on by itself. So a score does not depend on what else is scored, and is that of
one pass over everything, to the rounding of float32.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from twinset.contracts.errors import WrongUse
from twinset.models.device import ran_out
from twinset.models.encoders.contract import Running
from twinset.models.files import TOKENIZERS, Layout, ModelFiles, find_model, read_json
from twinset.models.language_models.answers import LENGTH, STOP, YES_NO, Answer
from twinset.models.language_models.chat_templates import LONGEST, REMEDY, bounded, check_template
from twinset.models.loading import load_beside, load_with_tokenizer

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

_LOG = logging.getLogger("twinset")
_SAFE = ("model.safetensors.index.json", "model.safetensors")
_IMAGES = ("preprocessor_config.json", "processor_config.json")
LAYOUT = Layout(
    "A multimodal language model is a folder as transformers saves it: config.json, model.safetensors, tokenizer.json "
    "and preprocessor_config.json or processor_config.json; nothing else is loaded",
    (("config.json",), _SAFE, _IMAGES, ("tokenizer.json",)),
    (
        *("config.json", "generation_config.json", *_IMAGES, "video_preprocessor_config.json"),
        *("chat_template.jinja", "chat_template.json", *TOKENIZERS, _SAFE),
        *("qformer_tokenizer/tokenizer.json", "qformer_tokenizer/tokenizer_config.json"),
    ),
)
LIBRARIES = ("torch", "torchvision", "transformers", "tokenizers", "pillow", "numpy")
_OTHER = "name a Qwen-VL, LLaVA, InternVL, SmolVLM or another such"
ENCODING = ("blip-2", "instructblip")  # `models.visual_questions.encoder_decoder`
CLOSE = 1e-3  # between log-probabilities of two ways to the same score; rounding gives some 1e-6
WRITTEN = 300  # tokens of an answer
LIKELIEST = 20  # tokens among which yes or no must be: as many as servers tell of
NOT_A_NUMBER = "not a number"  # how an answer of a network that gives NaN ends


def find_vision_language(name: str) -> ModelFiles:
    """The files of a model by its folder or hub id; raises `ModelMissing`, or `WrongUse` for one that encodes texts and
    is none of `ENCODING`.
    """
    files = find_model(name, LAYOUT)
    if has_encoder(files) and read_json(files.folder / "config.json").get("model_type") not in ENCODING:
        raise WrongUse(f"{files.folder}: has an encoder of texts beside its decoder; {_OTHER}")
    return files


def has_encoder(files: ModelFiles) -> bool:
    """Whether a model encodes texts beside its decoder."""
    said = read_json(files.folder / "config.json")
    text = said.get("text_config")
    inner = text if isinstance(text, dict) else {}
    return bool(said.get("is_encoder_decoder") or inner.get("is_encoder_decoder") or inner.get("model_type") == "t5")


class ImageRefused(Exception):
    """The model's processor does not take an image, such as one that is a hundred times wider than high."""


class VisionLanguageModel:
    """A model of `AutoModelForImageTextToText` in float32.

    identity: what decides what it gives. images_read: passes over images so far, whatever texts followed.
    """

    def __init__(self, name: str, running: Running) -> None:
        import transformers
        from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as known

        files = find_vision_language(name)
        if (kind := read_json(files.folder / "config.json").get("model_type")) not in known:
            raise WrongUse(f"{files.folder}: transformers opens no {kind!r} that writes about images; {_OTHER}")
        self.folder, self.images_read = files.folder, 0
        self.identity = ["vlm", files.digest(), {one: version(one) for one in LIBRARIES}, running.runtime()]
        self.device = running.start()
        self.tokenizer, network = load_with_tokenizer("AutoModelForImageTextToText", files, "float32")
        self.processor = load_beside(transformers.AutoProcessor, files.folder)
        self.model = network.to(self.device)
        self._takes = inspect.signature(self.model.forward).parameters
        self.prepare()

    def prepare(self) -> None:
        """Find what else asking needs; raises `WrongUse` where the folder lacks it."""
        self.template = getattr(self.processor, "chat_template", None) or self.tokenizer.chat_template
        self.image_token = getattr(self.processor, "image_token", None)
        if not self.template or not isinstance(self.image_token, str):
            raise WrongUse(f"{self.folder}: has no chat template or no token for images; name a model tuned to chats")
        check_template(self.template, self.folder)
        self.image_id = self.tokenizer.convert_tokens_to_ids(self.image_token)
        self._shares: bool | None = None  # whether shared passes give the same: tried on the first images

    def prompt(self, images: int, text: str) -> str:
        """A chat with one turn, as the model's template writes it, up to where its answer begins."""
        turn = [*({"type": "image"} for _ in range(images)), {"type": "text", "text": text}]
        with bounded(self.folder):
            written: str = self.processor.apply_chat_template(
                [{"role": "user", "content": turn}],
                chat_template=self.template,
                add_generation_prompt=True,
                tokenize=False,
            )
        if len(written) > LONGEST + len(text):
            raise WrongUse(f"{self.folder}: its chat template makes {len(written):,} characters; {REMEDY}")
        return written

    def next_tokens(self, images: Sequence[Image], texts: Sequence[str]) -> list[torch.Tensor]:
        """Log-probabilities of the first token of the answer to each text about images, each shape (vocabulary,)."""
        return self._passes(images, [self.prompt(len(images), text) for text in texts])

    def yes(self, images: Sequence[Image], texts: Sequence[str], words: tuple[str, str] = YES_NO) -> list[float | None]:
        """P(yes) / (P(yes) + P(no)) of the first token over all their spellings, or of other two words; NaN where the
        network gives it, and None where neither is among the `LIKELIEST`.
        """
        import torch

        yes, no = (torch.tensor(ids, device=self.device) for ids in self._spellings(words))
        found = list[float | None]()
        for one in self.next_tokens(images, texts):
            least = one.topk(min(LIKELIEST, len(one))).values[-1]
            both = torch.stack([one[yes].logsumexp(0), one[no].logsumexp(0)]).double()
            said = bool(one[torch.cat([yes, no])].max() >= least) or bool(one.isnan().any())
            found.append(float(both.softmax(0)[0]) if said else None)
        return found

    def _spellings(self, words: tuple[str, str]) -> list[list[int]]:
        found: dict[str, list[int]] = {word: [] for word in words}
        marks = " .,!" if words == YES_NO else " .,!()"  # a letter may stand in brackets
        for token, number in self.tokenizer.get_vocab().items():
            found.get(token.replace("▁", "").replace("Ġ", "").strip(marks).lower(), []).append(number)
        if not all(found.values()):
            raise WrongUse(f"{self.folder}: its tokenizer has no token for {' or '.join(words)}; name another model")
        return [sorted(found[word]) for word in words]

    def write(self, images: Sequence[Image], text: str, most: int | None = None) -> Answer:
        """The likeliest answer, token by token. most: tokens of it, `WRITTEN` when absent."""
        import torch
        from transformers import GenerationConfig

        ends = [self.model.generation_config.eos_token_id, self.tokenizer.eos_token_id]
        ends = [end for one in ends for end in (one if isinstance(one, list) else [one]) if end is not None]
        if not ends:
            raise WrongUse(f"{self.folder}: names no token that ends an answer (eos_token)")
        settings = GenerationConfig(
            max_new_tokens=most or WRITTEN, do_sample=False, eos_token_id=ends, pad_token_id=ends[0],
            output_logits=True, return_dict_in_generate=True,
        )  # fmt: skip
        read = self._read(images, self.prompt(len(images), text))
        self.images_read += 1
        with torch.inference_mode():
            made = self.model.generate(**read, generation_config=settings)
        prompt = read["input_ids"].shape[1]
        tokens: list[int] = made.sequences[0, self.before(prompt) :].tolist()
        if any(bool(one.isnan().any()) for one in made.logits):
            return Answer("", NOT_A_NUMBER, prompt, len(tokens))
        finish = STOP if tokens[-1] in ends else LENGTH
        return Answer(self.tokenizer.decode(tokens, skip_special_tokens=True), finish, prompt, len(tokens))

    def before(self, prompt: int) -> int:
        """How many tokens are written before the answer, of a prompt of so many."""
        return prompt

    def _special(self, prompt: str) -> dict[str, bool]:
        # As transformers' own `apply_chat_template`: a template may begin with the token that the tokenizer adds.
        begin = self.tokenizer.bos_token
        return {"add_special_tokens": False} if begin is not None and prompt.startswith(begin) else {}

    def _read(self, images: Sequence[Image], prompt: str) -> dict[str, Any]:
        """What the processor makes of images and a prompt; raises `ImageRefused`."""
        try:
            shown = [list(images)] if images else None
            read = self.processor(text=[prompt], images=shown, return_tensors="pt", **self._special(prompt))
        except (ValueError, TypeError, ArithmeticError, IndexError, RuntimeError) as error:
            if ran_out(error):
                raise
            raise ImageRefused(
                f"images of {', '.join(f'{one.width} x {one.height}' for one in images)}: {error}"
            ) from error
        return {key: value.to(self.device) for key, value in read.items() if key in self._takes}

    def _passes(self, images: Sequence[Image], prompts: Sequence[str]) -> list[torch.Tensor]:
        """Log-probabilities after each prompt, each shape (vocabulary,)."""
        read = self._read(images, prompts[0])
        first: list[int] = read["input_ids"][0].tolist()
        expanded, seen = self._expanded(prompts, first)
        if expanded is None:  # a processor that writes something else for images: each prompt by itself
            return [self._whole(self._read(images, prompt)) for prompt in prompts]
        # Always cut behind the last image, so that bits do not depend on what else is asked about it.
        if self._shares is False or any(ids[:seen] != expanded[0][:seen] for ids in expanded):
            return [self._whole(self._of(read, ids)) for ids in expanded]
        if self._shares is None:
            self._shares = self._tried(read, seen, expanded[-1])
            if not self._shares:
                _LOG.warning("%s: reads an image again for each text: a shared pass gives other scores", self.folder)
                return self._passes(images, prompts)
        return self._shared(read, seen, expanded)

    def _tried(self, read: dict[str, Any], seen: int, ids: list[int]) -> bool:
        """Whether a shared pass gives what one over everything does: not where what follows changes how an image is
        seen, and some networks take no cache so.
        """
        alone = self._whole(self._of(read, ids))
        try:
            (shared,) = self._shared(read, seen, [ids])
        except (ValueError, TypeError, IndexError, AttributeError, RuntimeError) as error:
            if ran_out(error):
                raise
            return False
        return bool(((alone.exp() - shared.exp()).abs().nan_to_num() < CLOSE).all())

    def _shared(self, read: dict[str, Any], seen: int, prompts: Sequence[list[int]]) -> list[torch.Tensor]:
        """As `_passes`, from one pass over the first ``seen`` tokens, which all prompts begin with."""
        import torch

        found = []
        with torch.inference_mode():
            self.images_read += 1
            cache = self.model(**self._of(read, prompts[0][:seen]), use_cache=True, **self._only_last()).past_key_values
            for ids in prompts:
                # No mask: there is no padding, and places are counted on from the cache.
                rest = torch.tensor([ids[seen:]], device=self.device)
                out = self.model(input_ids=rest, past_key_values=copy.deepcopy(cache), use_cache=True)
                found.append(out.logits[0, -1].float().log_softmax(-1))
        return found

    def _expanded(self, prompts: Sequence[str], first: list[int]) -> tuple[list[list[int]] | None, int]:
        """Tokens of each prompt with all that stands for images, from those of the first one as the processor gave
        them, and how many go up to the last one of an image; None where its parts are not found.
        """
        texts = [self.tokenizer(one, **self._special(one))["input_ids"] for one in prompts]
        places = [[at for at, token in enumerate(ids) if token == self.image_id] for ids in texts]
        if not all(places):
            return None, 0
        parts = [
            (ids[: at[0]], ids[at[0] : at[-1] + 1], ids[at[-1] + 1 :]) for ids, at in zip(texts, places, strict=True)
        ]
        before, between, behind = parts[0]
        inner = first[len(before) : len(first) - len(behind)]
        same = first == before + inner + behind and all(one[1] == between for one in parts)
        return ([one[0] + inner + one[2] for one in parts] if same else None), len(before) + len(inner)

    def _of(self, read: dict[str, Any], ids: list[int]) -> dict[str, Any]:
        """What the processor made of the images, with other tokens: what is told of each token is 0 of new ones."""
        import torch

        width, found = read["input_ids"].shape, dict(read)
        for key, value in read.items():
            if value.shape == width:
                row = value[0, : len(ids)]
                found[key] = torch.cat([row, row.new_zeros(len(ids) - len(row))])[None]
        found["input_ids"] = torch.tensor([ids], device=self.device)
        found["attention_mask"] = torch.ones_like(found["input_ids"])
        return found

    def _whole(self, read: dict[str, Any]) -> torch.Tensor:
        """As one of `_passes`, in one pass over everything."""
        import torch

        self.images_read += 1
        with torch.inference_mode():
            out = self.model(**self._of(read, read["input_ids"][0].tolist()), use_cache=False, **self._only_last())
        logits: torch.Tensor = out.logits[0, -1].float().log_softmax(-1)
        return logits

    def _only_last(self) -> dict[str, int]:
        return {"logits_to_keep": 1} if "logits_to_keep" in self._takes else {}
