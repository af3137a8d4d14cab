"""Whether the parts of a loaded model are whole and go together, checked before anything is drawn with them.

A part that lacks weights is loaded with random ones instead, which differ from process to process; parts of different
models fail in the midst of drawing, if at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generators.prompt_to_prompt.attention import cross_attention_sizes
from manifests.errors import TwinsetError, WrongUse
from shards.models.device import ran_out

if TYPE_CHECKING:
    from generators.prompt_to_prompt.pipeline import PromptToPromptPipeline

TIMESTEPS = 100_000  # of a noise schedule, at most: models have a thousand, and each takes memory
PREDICTIONS = ("epsilon", "sample", "v_prediction")
SIDE = 1024  # of latents, at most: a 2048 pixel image has 256


@contextmanager
def loading(part: Path) -> Iterator[None]:
    """`WrongUse` with the part's name for whatever its files make diffusers, transformers or safetensors raise.

    Memory that runs out and trouble with the disk stay what they are: another attempt can succeed.
    """
    try:
        yield
    except (TwinsetError, ImportError):
        raise
    except Exception as error:
        if ran_out(error) or (isinstance(error, OSError) and error.errno):
            raise
        # Their messages have one line for each tensor.
        problem = " ".join(str(error).split())[:300] or type(error).__name__
        raise WrongUse(
            f"{part}: cannot be loaded ({problem}); get its files again: weights may have been cut short, or belong to "
            "another config.json"
        ) from error


def check_whole(part: Path, missing: Any) -> None:
    """Raises `WrongUse` for weights that the part's files lack. missing: their names."""
    if names := sorted(missing):
        named = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise WrongUse(
            f"{part}: the weights lack {len(names)} tensors that config.json asks for ({named}), which would be "
            "random; get the files of this part again, all from one model"
        )


def check_schedule(file: Path, config: Mapping[str, Any]) -> None:
    """Raises `WrongUse` for a noise schedule without a sensible length, or of a model that predicts something else."""
    timesteps, prediction = config.get("num_train_timesteps", 1000), config.get("prediction_type", "epsilon")
    if type(timesteps) is not int or not 1 <= timesteps <= TIMESTEPS:
        raise WrongUse(f"{file}: num_train_timesteps must be a whole number, 1 to {TIMESTEPS}; get the file again")
    if prediction not in PREDICTIONS:
        raise WrongUse(f"{file}: prediction_type is {prediction!r}; it must be one of {', '.join(PREDICTIONS)}")


def check_together(folder: Path, pipeline: PromptToPromptPipeline) -> None:
    """Raises `WrongUse`, naming the part, where the parts of a model cannot draw together."""
    unet, vae = pipeline.unet.config, pipeline.vae.config
    side = unet.sample_size
    if type(side) is not int or not 1 <= side <= SIDE:
        raise WrongUse(
            f"{folder}/unet/config.json: sample_size is {side!r}; write the side of the latents that the model was "
            f"trained at, 1 to {SIDE}"
        )
    if not cross_attention_sizes(pipeline.unet, side, side):
        raise WrongUse(
            f"{folder}/unet: has no cross-attention, which prompt-to-prompt edits; name a model that draws what "
            "captions say"
        )
    channels = {unet.in_channels, unet.out_channels, vae.latent_channels}
    if len(channels) > 1:
        raise WrongUse(
            f"{folder}: the UNet takes {unet.in_channels} channels and gives {unet.out_channels}, the autoencoder "
            f"reads {vae.latent_channels}; name a text-to-image model, not one for inpainting"
        )
    encoders = [("", pipeline.text_encoder, pipeline.tokenizer)]
    if pipeline.text_encoder_2 is not None:
        encoders.append(("_2", pipeline.text_encoder_2, pipeline.tokenizer_2))
    width = sum(encoder.config.hidden_size for _, encoder, _ in encoders)
    if width != unet.cross_attention_dim:
        raise WrongUse(
            f"{folder}: text encoders give {width} channels, the UNet reads {unet.cross_attention_dim}; take these "
            "parts from one model"
        )
    for number, encoder, tokenizer in encoders:
        _check_tokenizer(folder / f"tokenizer{number}", tokenizer, encoder.config)


def _check_tokenizer(part: Path, tokenizer: Any, encoder: Any) -> None:
    if len(tokenizer) > encoder.vocab_size:
        raise WrongUse(
            f"{part}: knows {len(tokenizer)} tokens, its text encoder {encoder.vocab_size}; take both from one model"
        )
    length, read = tokenizer.model_max_length, encoder.max_position_embeddings
    if type(length) is not int or not 3 <= length <= read:
        raise WrongUse(
            f"{part}/tokenizer_config.json: model_max_length must be a whole number up to {read}, what the text "
            "encoder reads; write it there, or get the file again"
        )
