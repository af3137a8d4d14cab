"""A pipeline in memory: opened part by part under the policy of `models.loading`, never by the folder's own loader."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import diffusers
import numpy as np
import torch
import transformers

from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.contracts.kinds.samples import Json, Pixels
from twinset.models.device import GPU, ran_out, round_alike
from twinset.models.diffusion.classes import (
    CHAT,
    ENCODERS,
    GIVEN,
    MADE_WITH,
    PROCESSORS,
    SAMPLERS,
    SCHEDULERS,
    TOKENIZERS,
    TRUE_CFG,
)
from twinset.models.diffusion.folder import PipelineFolder, weights_of
from twinset.models.diffusion.settings import DiffusionModel, PipelineSettings
from twinset.models.loading import LONGEST, check_vocabulary, load_beside, load_network, loading

HEAD = (r"^lm_head\.",)  # of text encoders saved with the head that writes, which is not asked


class OpenPipeline:
    """A pipeline as the settings ask for it.

    pipeline: of diffusers. files: the weights that draw. digest: of all that it draws with. steps, guidance: of the
    settings, or of the class.
    """

    def __init__(self, settings: DiffusionModel) -> None:
        for library in (diffusers.utils.logging, transformers.utils.logging):  # a build shows bars of its own
            library.set_verbosity_error()
            library.disable_progress_bar()
        round_alike(settings.threads)
        self.found, self._settings = settings.found(), settings
        self.files, self.digest = self.found.weights(), self.found.digest()
        self.precision = _precision(settings, self.found)
        self.pipeline = _opened(self.found, settings.scheduler, getattr(torch, self.precision))
        self.pipeline.set_progress_bar_config(disable=True)
        self._finite = list[bool]()  # of each picture as it is decoded: diffusers cuts infinite numbers off
        self.pipeline.vae.decoder.register_forward_hook(
            lambda _module, _given, out: self._finite.extend(out.isfinite().flatten(1).all(1).tolist())
        )
        self.pipeline.vae.enable_slicing()  # one picture at a time: 1024 x 1024 in float32 takes gigabytes
        self.pipeline.to("cpu" if settings.device == "cpu" else GPU)
        if isinstance(settings, PipelineSettings):
            _speed_up(self.denoiser, settings)
        self._takes = inspect.signature(type(self.pipeline).__call__).parameters
        guidance = self._takes[self.found.row.guidance].default
        self.steps = settings.steps or self._takes["num_inference_steps"].default
        self.guidance = guidance if settings.guidance is None else settings.guidance

    @property
    def denoiser(self) -> Any:
        """The network that denoises."""
        return getattr(self.pipeline, self.found.denoiser)

    @property
    def tokenizers(self) -> list[Any]:
        """One for each text encoder."""
        return [getattr(self.pipeline, part) for part in self.found.classes if part.startswith("tokenizer")]

    @property
    def side(self) -> int:
        """Side of the pictures that the model was trained on; 1024 pixels as a rule where nothing says it."""
        latents = getattr(self.pipeline, "default_sample_size", None) or self.denoiser.config.get("sample_size", 128)
        return int(latents * self.pipeline.vae_scale_factor)

    def steers(self, prompt: str) -> str:
        """A token in a prompt that a tokenizer takes for a mark of its own, such as the place of a picture; or none."""
        # A mark of one sign is text: SDXL's second tokenizer fills captions up with "!".
        marks = (mark for words in self.tokenizers for mark in words.all_special_tokens if len(mark) > 1)
        return next((mark for mark in marks if mark in prompt), "")

    def over(self, prompt: str) -> int:
        """Tokens of a prompt that no text encoder would read; CLIP beside another one reads the beginning alone."""
        counts = []
        for words in self.tokenizers:
            most = words.model_max_length if _is_clip(words) else self._takes["max_sequence_length"].default
            counts.append(len(words(prompt).input_ids) + self.found.row.framed - int(most))
        return max(0, min(counts))

    def __call__(self, prompts: Sequence[str], seeds: Sequence[int] = (), **given: Any) -> list[tuple[Pixels, bool]]:
        """Pictures of prompts, each with whether all of its numbers were finite.

        Args:
            seeds: of the noise, which is drawn on the CPU, of each picture by a generator of its own; none where
                ``given`` has ``latents``.
            given: more for the pipeline, as far as its class takes it.
        """
        row = self.found.row
        options: dict[str, Any] = {"prompt": [*prompts], "num_inference_steps": self.steps, row.guidance: self.guidance}
        if row.guidance == TRUE_CFG:
            options["negative_prompt"] = [" "] * len(prompts)
        options["generator"] = [torch.Generator("cpu").manual_seed(seed) for seed in seeds] or None
        more = {name: value for name, value in {**GIVEN, **given}.items() if name in self._takes and value is not None}
        self._finite.clear()
        try:
            images = self.pipeline(**options, **more, output_type="pt").images
        except (TwinsetError, MemoryError):
            raise
        except Exception as error:
            if ran_out(error):
                raise
            problem = " ".join(str(error).split())[:LONGEST] or type(error).__name__
            raise WrongUse(
                f"{self.found.folder}: {self.found.name} cannot draw with these parts and settings ({problem}); get "
                "the model's files again, all from one model, or leave out resolution, steps and guidance"
            ) from error
        return [*zip(map(_levels, images), self._finite, strict=True)]

    def provenance(self) -> dict[str, Json]:
        """How its pictures are made."""
        return {
            **self._settings.names,
            "pipeline": self.found.name,
            "weights": self.digest,
            "scheduler": type(self.pipeline.scheduler).__name__,
            "steps": self.steps,
            "guidance": self.guidance,
            "precision": self.precision,
        }


def _precision(settings: DiffusionModel, folder: PipelineFolder) -> str:
    if settings.precision != "auto":
        return settings.precision
    if settings.device == "cpu":
        return "float32"
    return "float16" if folder.denoiser == "unet" else "bfloat16"


def _opened(folder: PipelineFolder, scheduler: str, dtype: torch.dtype) -> Any:
    """A pipeline of diffusers, with all parts on the CPU."""
    kind = getattr(diffusers, folder.name)
    takes = inspect.signature(kind.__init__).parameters
    parts = {part: _part(folder, part, dtype) for part in folder.classes}
    _check_words(folder, parts)
    if scheduler != "own":
        name, given = SAMPLERS[scheduler]
        with loading(folder.places["scheduler"]):
            parts["scheduler"] = getattr(diffusers, name).from_config(parts["scheduler"].config, **given)
    flags = {
        name: value for name, value in {**folder.index, **MADE_WITH}.items() if type(value) is bool and name in takes
    }
    absent = {name: None for name, param in takes.items() if param.default is param.empty and name != "self"}
    with loading(folder.folder):
        return kind(**{**absent, **parts, **flags})


def _part(folder: PipelineFolder, part: str, dtype: torch.dtype) -> Any:
    """One part, by the class that the table allows."""
    place, name = folder.places[part], folder.classes[part]
    if name in SCHEDULERS:
        with loading(place):
            return getattr(diffusers, name).from_pretrained(place, local_files_only=True)
    if name in PROCESSORS:
        words = load_beside(transformers.Qwen2TokenizerFast, folder.places["tokenizer"])
        images, videos = load_beside(transformers.Qwen2VLImageProcessor, place), transformers.Qwen2VLVideoProcessor()
        return transformers.Qwen2VLProcessor(images, words, videos, chat_template="")
    if name in TOKENIZERS:
        words = load_beside(getattr(transformers, TOKENIZERS[name]), place)
        words.chat_template = CHAT if folder.row.framed else None
        return words
    variant = "fp16" if ".fp16." in weights_of(place, name)[0].name else None
    library: Any = transformers if name in ENCODERS else diffusers
    left_over = HEAD if name in ENCODERS else ()
    return load_network(getattr(library, name), place, dtype, left_over, use_safetensors=True, variant=variant)


def _check_words(folder: PipelineFolder, parts: Mapping[str, Any]) -> None:
    """Raise `WrongUse` where a tokenizer and its text encoder are of different models."""
    for part, words in parts.items():
        encoder = parts.get(part.replace("tokenizer", "text_encoder"))
        if part.startswith("tokenizer") and encoder is not None:
            config = encoder.config.get_text_config()
            longest = config.max_position_embeddings if _is_clip(words) else 0
            check_vocabulary(words, config.vocab_size, folder.places[part], longest)


def _is_clip(words: Any) -> bool:
    return isinstance(words, transformers.CLIPTokenizer)


def _speed_up(denoiser: Any, settings: PipelineSettings) -> None:
    """Set how a network computes, by diffusers' own means; raises `WrongUse` where it cannot."""
    if settings.fused:
        with _supported("fused"):
            denoiser.fuse_qkv_projections()
            if not any(getattr(layer, "fused_projections", False) for layer in denoiser.modules()):
                raise ValueError("no layer was fused")
    if settings.compiled:
        with _supported("compiled"):
            denoiser.compile_repeated_blocks(fullgraph=True)
    with _supported("attention"):
        if settings.attention != "native" and isinstance(denoiser, diffusers.UNet2DConditionModel):
            raise ValueError("a UNet has torch's own alone")
        denoiser.set_attention_backend(settings.attention)


@contextmanager
def _supported(setting: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, AttributeError, ImportError, RuntimeError) as error:
        raise WrongUse(
            f"engine.{setting}: this model or machine does not support it ({error}); leave it out"
        ) from error


def _levels(image: torch.Tensor) -> Pixels:
    """(3, height, width) in 0..1 as (height, width, 3) of 0..255, rounded as diffusers does."""
    levels = image.float().nan_to_num(0.0).permute(1, 2, 0).cpu().numpy()
    return (levels * 255).round().astype(np.uint8)
