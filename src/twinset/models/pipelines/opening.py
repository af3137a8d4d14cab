"""A pipeline in memory: opened part by part under the policy of `models.loading`, never by the folder's own loader."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import diffusers
import numpy as np
import torch
import transformers

from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.contracts.kinds.samples import Json, Pixels
from twinset.models.device import GPU, ran_out, round_alike
from twinset.models.diffusion.models import be_quiet
from twinset.models.loading import LONGEST, load_beside, load_network, loading
from twinset.models.pipelines.classes import CHAT, ENCODERS, SCHEDULERS, TOKENIZERS
from twinset.models.pipelines.folder import Found, weights_of
from twinset.models.pipelines.settings import PipelineSettings

HEAD = (r"^lm_head\.",)  # of text encoders saved with the head that writes, which is not asked


class OpenPipeline:
    """A pipeline as the settings ask for it. files: the weights that draw. side: pixels that it was trained at."""

    def __init__(self, settings: PipelineSettings) -> None:
        be_quiet()
        round_alike(settings.threads)
        self.found, self._settings = settings.found(), settings
        self.files, self._digest = self.found.weights(), self.found.digest()
        automatic = "float32" if settings.device == "cpu" else "bfloat16"
        self.precision = automatic if settings.precision == "auto" else settings.precision
        dtype, kind = getattr(torch, self.precision), getattr(diffusers, self.found.name)
        parts = {part: _part(self.found, part, dtype) for part in self.found.parts}
        _check_words(self.found, parts)
        takes = inspect.signature(kind.__init__).parameters
        absent = {
            name: None for name, one in takes.items() if one.default is inspect.Parameter.empty and name != "self"
        }
        with loading(self.found.folder):
            self._pipeline = kind(**{**absent, **parts, **self.found.flags, **self.found.row.made_with})
        self._words = [one for part, one in parts.items() if part.startswith("tokenizer")]
        self._pipeline.set_progress_bar_config(disable=True)
        self._pipeline.vae.enable_slicing()  # one picture at a time: 1024 x 1024 in float32 takes gigabytes
        self._pipeline.to("cpu" if settings.device == "cpu" else GPU)
        self._takes = inspect.signature(kind.__call__).parameters
        row = self.found.row
        self.steps = settings.steps or self._takes["num_inference_steps"].default
        self.guidance = self._takes[row.guidance].default if settings.guidance is None else settings.guidance

    @property
    def side(self) -> int:
        """Side of the pictures that the model was trained on; 1024 pixels as a rule where nothing says it."""
        latents = getattr(self._pipeline, "default_sample_size", None) or self._denoiser.config.get("sample_size", 128)
        return int(latents * self._pipeline.vae_scale_factor)

    @property
    def _denoiser(self) -> Any:
        return self._pipeline.unet if "unet" in self.found.parts else self._pipeline.transformer

    def steers(self, prompt: str) -> str:
        """A token in a prompt that a tokenizer takes for a mark of its own, such as the place of a picture; or none."""
        # A mark of one sign is text: SDXL's second tokenizer fills captions up with "!".
        marks = (mark for words in self._words for mark in words.all_special_tokens if len(mark) > 1)
        return next((mark for mark in marks if mark in prompt), "")

    def over(self, prompt: str) -> int:
        """Tokens of a prompt that no text encoder would read; CLIP beside another one reads the beginning alone."""
        counts = []
        for words in self._words:
            most = words.model_max_length if _is_clip(words) else self._takes["max_sequence_length"].default
            counts.append(len(words(prompt).input_ids) + self.found.row.framed - int(most))
        return max(0, min(counts))

    def __call__(self, prompts: Sequence[str], seeds: Sequence[int], **given: Any) -> list[tuple[Pixels, bool]]:
        """Pictures of prompts, each with whether all of its numbers were finite.

        Noise is drawn on the CPU, of each picture by a generator of its own, in the precision of the text encoder.

        Args:
            given: more for the pipeline, as far as its class takes it.
        """
        row, n = self.found.row, len(prompts)
        options: dict[str, Any] = {"prompt": [*prompts], "num_inference_steps": self.steps, row.guidance: self.guidance}
        options |= {"negative_prompt": [" "] * n} if row.negative else {}
        options |= {**row.given, "output_type": "pt"}
        options |= {name: value for name, value in given.items() if name in self._takes and value is not None}
        options["generator"] = [torch.Generator("cpu").manual_seed(seed) for seed in seeds]
        try:
            images = self._pipeline(**options).images
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
        return [_levels(image) for image in images]

    def provenance(self) -> dict[str, Json]:
        """How its pictures are made."""
        return {
            "engine": self._settings.kind,
            "model": self._settings.model_said,
            "pipeline": self.found.name,
            "weights": self._digest,
            "scheduler": self.found.parts["scheduler"],
            "steps": self.steps,
            "guidance": self.guidance,
            "precision": self.precision,
        }


def _levels(image: torch.Tensor) -> tuple[Pixels, bool]:
    """(3, height, width) in 0..1 as (height, width, 3) of 0..255, rounded as diffusers does."""
    image = image.float()
    finite = bool(image.isfinite().all())
    levels = image.nan_to_num(0.0).permute(1, 2, 0).cpu().numpy()
    return (levels * 255).round().astype(np.uint8), finite


def _part(found: Found, part: str, dtype: torch.dtype) -> Any:
    """One part, by the class that the table allows."""
    folder, name = found.folder / part, found.parts[part]
    if name in SCHEDULERS:
        with loading(folder):
            return getattr(diffusers, name).from_pretrained(folder, local_files_only=True)
    if name in TOKENIZERS:
        kind = getattr(transformers, TOKENIZERS[name])
        if name == "Qwen2VLProcessor":
            words = load_beside(transformers.Qwen2TokenizerFast, found.folder / "tokenizer")
            videos = transformers.Qwen2VLVideoProcessor()
            return transformers.Qwen2VLProcessor(load_beside(kind, folder), words, videos, chat_template="")
        words = load_beside(kind, folder)
        words.chat_template = CHAT if found.row.framed else None
        return words
    variant = "fp16" if ".fp16." in weights_of(folder, name)[0].name else None
    library: Any = transformers if name in ENCODERS else diffusers
    left_over = HEAD if name in ENCODERS else ()
    return load_network(getattr(library, name), folder, dtype, left_over, use_safetensors=True, variant=variant)


def _is_clip(words: Any) -> bool:
    return isinstance(words, transformers.CLIPTokenizer)


def _check_words(found: Found, parts: Mapping[str, Any]) -> None:
    """Raise `WrongUse` where a tokenizer and its text encoder are of different models."""
    for part, words in parts.items():
        if not part.startswith("tokenizer"):
            continue
        config = parts[part.replace("tokenizer", "text_encoder")].config.get_text_config()
        if len(words) > config.vocab_size:
            raise WrongUse(
                f"{found.folder / part}: knows {len(words):,} tokens, its text encoder {config.vocab_size:,}; take "
                "both from one model"
            )
        if _is_clip(words) and not 3 <= words.model_max_length <= config.max_position_embeddings:
            raise WrongUse(
                f"{found.folder / part}/tokenizer_config.json: model_max_length must be up to "
                f"{config.max_position_embeddings}, what the text encoder reads; write it there, or get the file again"
            )
