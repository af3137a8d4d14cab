"""Multimodal language models of transformers in this process: what they write after images and a prompt, and how likely
answers are.

An image goes through the network once for all texts that follow it: the pass up to its last token fills a cache of keys
and values, from which each text goes on by itself. So a score does not depend on what else is scored, and is that of
one pass over everything, to the rounding of float32.
"""

import copy
import inspect
import logging
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

import torch
import transformers
from PIL.Image import Image
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as KNOWN

from twinset.contracts.errors import WrongUse
from twinset.models.device import inference, ran_out, within_memory
from twinset.models.encoders.contract import NotApplicable, Running
from twinset.models.engines import LocalEngine
from twinset.models.language_models.answers import LIKELY, NOT_A_NUMBER, REFUSED, YES_NO, Answer, Request, by_images
from twinset.models.language_models.chat_templates import bounded, check_template
from twinset.models.language_models.local_model import answer_of, end_tokens
from twinset.models.loading import load_beside, load_with_tokenizer
from twinset.models.visual_questions.settings import VisionLanguage, find_vision_language, has_encoder, model_type

_LOG = logging.getLogger("twinset")
LIBRARIES = ("torch", "torchvision", "transformers", "tokenizers", "pillow", "numpy")
CLOSE = 1e-3  # between log-probabilities of two ways to the same score; rounding gives some 1e-6


class ImageRefused(Exception):
    """The model's processor does not take an image, such as one that is a hundred times wider than high."""


class VisionLanguageModel:
    """A model of `AutoModelForImageTextToText` in float32.

    identity: what decides what it gives. images_read: passes over images so far, whatever texts followed.
    """

    def __init__(self, name: str, running: Running) -> None:
        files = find_vision_language(name)
        if (kind := model_type(files)) not in KNOWN:
            raise WrongUse(f"{files.folder}: transformers opens no {kind!r} that writes about images; name another")
        self.folder, self.images_read = files.folder, 0
        self.identity = ["vlm", files.digest(), {name: version(name) for name in LIBRARIES}, running.runtime()]
        self.device = running.start()
        self.tokenizer, network = load_with_tokenizer("AutoModelForImageTextToText", files, "float32")
        self.processor = load_beside(transformers.AutoProcessor, files.folder)
        self.model = network.to(self.device)
        self._takes = inspect.signature(self.model.forward).parameters
        self._last = {"logits_to_keep": 1} if "logits_to_keep" in self._takes else {}
        self.prepare()

    def prepare(self) -> None:
        """Find what else asking needs; raises `WrongUse` where the folder lacks it."""
        template = getattr(self.processor, "chat_template", None) or self.tokenizer.chat_template
        self.image_token = getattr(self.processor, "image_token", None)
        if not template or not isinstance(self.image_token, str):
            raise WrongUse(f"{self.folder}: has no chat template or no token for images; name a model tuned to chats")
        self.template = check_template(template, self.folder)
        self.image_id = self.tokenizer.convert_tokens_to_ids(self.image_token)
        self._shares: bool | None = None  # whether shared passes give the same: tried on the first images

    def prompt(self, images: int, text: str) -> str:
        """A chat with one turn, as the model's template writes it, up to where its answer begins."""
        turn = [*({"type": "image"} for _ in range(images)), {"type": "text", "text": text}]
        write = partial(
            self.processor.apply_chat_template,
            [{"role": "user", "content": turn}],
            chat_template=self.template,
            add_generation_prompt=True,
            tokenize=False,
        )
        return bounded(write, self.folder, len(text))

    def ask(self, requests: Sequence[Request], longest: int) -> list[Answer]:
        """As `LanguageModel.ask`. longest: tokens of an answer."""
        return [answer for group in by_images(requests) for answer in self._about(group, longest)]

    def _about(self, requests: Sequence[Request], longest: int) -> list[Answer]:
        """Answers to requests about the same images."""
        images, words = [image.pixels for image in requests[0].images], requests[0].words
        texts = [request.text for request in requests]
        try:
            return self._likely(images, texts, words) if words else [self._write(images, t, longest) for t in texts]
        except ImageRefused as error:
            _LOG.warning("%s", error)
            return [Answer(str(error), REFUSED)] * len(requests)

    def _likely(self, images: Sequence[Image], texts: Sequence[str], words: tuple[str, str]) -> list[Answer]:
        """How likely the first word is after each text: of the first token, over all spellings of both words, which
        must have `LIKELY` together.
        """
        spellings = [torch.tensor(ids, device=self.device) for ids in self._spellings(words)]
        answers = list[Answer]()
        for tokens in self.next_tokens(images, texts):
            shares = torch.stack([tokens[ids].logsumexp(0) for ids in spellings]).double().softmax(0)
            likely = bool(tokens[torch.cat(spellings)].logsumexp(0).exp() >= LIKELY)
            if tokens.isnan().any():
                answers.append(Answer(finish=NOT_A_NUMBER))
            else:
                answers.append(Answer(probability=float(shares[0]) if likely else None))
        return answers

    def _spellings(self, words: tuple[str, str]) -> list[list[int]]:
        spellings: dict[str, list[int]] = {word: [] for word in words}
        marks = " .,!" if words == YES_NO else " .,!()"  # a letter may stand in brackets
        for token, number in self.tokenizer.get_vocab().items():
            spellings.get(token.replace("▁", "").replace("Ġ", "").strip(marks).lower(), []).append(number)
        if not all(spellings.values()):
            raise WrongUse(f"{self.folder}: its tokenizer has no token for {' or '.join(words)}; name another model")
        return [sorted(spellings[word]) for word in words]

    def _write(self, images: Sequence[Image], text: str, longest: int) -> Answer:
        """The likeliest answer, token by token."""
        ends = end_tokens(self.tokenizer, self.model, self.folder)
        settings = transformers.GenerationConfig(
            max_new_tokens=longest, do_sample=False, eos_token_id=ends, pad_token_id=ends[0],
            output_logits=True, return_dict_in_generate=True,
        )  # fmt: skip
        read = self._read(images, self.prompt(len(images), text))
        self.images_read += 1
        with torch.inference_mode():
            made = self.model.generate(**read, generation_config=settings)
        prompt, tokens = read["input_ids"].shape[1], made.sequences[0, -len(made.logits) :].tolist()
        broken = any(bool(logits.isnan().any()) for logits in made.logits)
        return answer_of(self.tokenizer, tokens, broken, ends, prompt)

    def next_tokens(self, images: Sequence[Image], texts: Sequence[str]) -> list[torch.Tensor]:
        """Log-probabilities of the first token of the answer to each text about images, each shape (vocabulary,)."""
        prompts = [self.prompt(len(images), text) for text in texts]
        with torch.inference_mode():
            return self._passes(images, prompts)

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
            sizes = ", ".join(f"{image.width} x {image.height}" for image in images)
            raise ImageRefused(f"images of {sizes}: {error}") from error
        return {key: value.to(self.device) for key, value in read.items() if key in self._takes}

    def _passes(self, images: Sequence[Image], prompts: Sequence[str]) -> list[torch.Tensor]:
        """Log-probabilities after each prompt, each shape (vocabulary,)."""
        reads = [self._read(images, prompt) for prompt in prompts]
        ids: list[list[int]] = [read["input_ids"][0].tolist() for read in reads]
        # Always cut behind the last image, so that bits do not depend on what else is asked about it.
        seen = max((place + 1 for place, token in enumerate(ids[0]) if token == self.image_id), default=0)
        if not seen or any(tokens[:seen] != ids[0][:seen] for tokens in ids):
            return [self._whole(read) for read in reads]
        if self._shares is None:
            self._shares = self._tried(reads[-1], seen)
            if not self._shares:
                _LOG.warning("%s: reads an image again for each text: a shared pass gives other scores", self.folder)
        return self._shared(reads, seen) if self._shares else [self._whole(read) for read in reads]

    def _tried(self, read: dict[str, Any], seen: int) -> bool:
        """Whether a shared pass gives what one over everything does: not where what follows changes how an image is
        seen, and some networks take no cache so.
        """
        alone = self._whole(read)
        try:
            (shared,) = self._shared([read], seen)
        except (ValueError, TypeError, IndexError, AttributeError, RuntimeError) as error:
            if ran_out(error):
                raise
            return False
        return bool(((alone.exp() - shared.exp()).abs().nan_to_num() < CLOSE).all())

    def _shared(self, reads: Sequence[dict[str, Any]], seen: int) -> list[torch.Tensor]:
        """As `_passes`, from one pass over the first ``seen`` tokens, which are those of all."""
        self.images_read += 1
        width = reads[0]["input_ids"].shape
        begin = {key: value[:, :seen] if value.shape == width else value for key, value in reads[0].items()}
        cache = self.model(**begin, use_cache=True, **self._last).past_key_values
        rows = list[torch.Tensor]()
        for read in reads:
            # No mask: there is no padding, and places are counted on from the cache.
            rest = read["input_ids"][:, seen:]
            out = self.model(input_ids=rest, past_key_values=copy.deepcopy(cache), use_cache=True)
            rows.append(out.logits[0, -1].float().log_softmax(-1))
        return rows

    def _whole(self, read: dict[str, Any]) -> torch.Tensor:
        """As one of `_passes`, in one pass over everything."""
        self.images_read += 1
        logits: torch.Tensor = self.model(**read, use_cache=False, **self._last).logits
        return logits[0, -1].float().log_softmax(-1)


class EncoderDecoder(VisionLanguageModel):
    """BLIP-2 and InstructBLIP with T5: the encoder reads an image and a prompt, without a chat around it, and the
    decoder writes the answer.

    BLIP-2 sees an image once for all prompts; InstructBLIP once a prompt, with which its Q-Former reads it.
    """

    def prepare(self) -> None:
        self.start = self.model.config.text_config.decoder_start_token_id

    def prompt(self, images: int, text: str) -> str:
        if images != 1:
            raise NotApplicable(
                f"{self.folder}: reads one image, and a prompt shows it {images}; name a prompt with images: joined"
            )
        return text

    def _passes(self, images: Sequence[Image], prompts: Sequence[str]) -> list[torch.Tensor]:
        rows, seen = list[torch.Tensor](), None
        start = torch.tensor([[self.start]], device=self.device)
        for prompt in prompts:
            read = self._read(images, prompt)
            pixels = {key: read[key] for key in read if key == "pixel_values" or key.startswith("qformer")}
            if seen is None or len(pixels) > 1:
                seen = self.model.get_image_features(**pixels, return_dict=True)
                self.images_read += 1
            read |= {"pixel_values": None, "mm_encoder_outputs": {"image": seen}}
            rows.append(self.model(**read, decoder_input_ids=start).logits[0, -1].float().log_softmax(-1))
        return rows


def open_vision_language(name: str, running: Running) -> VisionLanguageModel:
    """The model of a folder; raises as `find_vision_language`."""
    return (EncoderDecoder if has_encoder(find_vision_language(name)) else VisionLanguageModel)(name, running)


class LocalChats(LocalEngine[VisionLanguage]):
    """As `LanguageModel`; the prompt alone asks for the schema. Yes is as likely as VQAScore has it (Lin et al. 2024),
    of other questions.
    """

    name = "answers"
    version = 1  # yes or no needs half the probability

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """As `LanguageModel.ask`."""
        with inference(self.threads):
            return within_memory(partial(self.loaded.ask, requests, self.settings.max_tokens))

    def load(self) -> VisionLanguageModel:
        return open_vision_language(self.settings.model, Running(self.settings.device, 1, self.threads))
