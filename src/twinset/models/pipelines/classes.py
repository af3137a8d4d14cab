"""The pipelines of diffusers that are opened, one row each: the only place in the tree that knows their names.

A model's model_index.json names its pipeline and the classes of its parts. What is not in these tables is not opened.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

#: Text encoders of transformers, with the ``model_type`` of their config.json.
ENCODERS = {
    "CLIPTextModel": "clip_text_model",
    "CLIPTextModelWithProjection": "clip_text_model",
    "T5EncoderModel": "t5",
    "Gemma2Model": "gemma2",
    "Qwen3Model": "qwen3",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen2_5_VLForConditionalGeneration": "qwen2_5_vl",
}
#: Tokenizers and processors of transformers, by the name that folders give them. None reads code of its folder.
TOKENIZERS = {
    "CLIPTokenizer": "CLIPTokenizer",
    "T5Tokenizer": "T5TokenizerFast",
    "T5TokenizerFast": "T5TokenizerFast",
    "GemmaTokenizer": "GemmaTokenizerFast",
    "GemmaTokenizerFast": "GemmaTokenizerFast",
    "Qwen2Tokenizer": "Qwen2TokenizerFast",
    "Qwen2TokenizerFast": "Qwen2TokenizerFast",
    "Qwen2VLProcessor": "Qwen2VLImageProcessor",
}
#: Parts of older folders that judge pictures or read other pictures. They are not loaded, whatever they are.
LEFT_OUT = frozenset({"safety_checker", "feature_extractor", "image_encoder"})

_ODE = (
    *("DDIMScheduler", "DDPMScheduler", "DPMSolverMultistepScheduler", "EulerDiscreteScheduler"),
    *("EulerAncestralDiscreteScheduler", "LCMScheduler", "LMSDiscreteScheduler", "PNDMScheduler"),
    "UniPCMultistepScheduler",
)
_FLOW = ("FlowMatchEulerDiscreteScheduler",)
SCHEDULERS = frozenset({*_ODE, *_FLOW})

_CLIP, _POOLED, _T5 = ("CLIPTextModel",), ("CLIPTextModelWithProjection",), ("T5EncoderModel",)
_CLIP_WORDS, _T5_WORDS = ("CLIPTokenizer",), ("T5Tokenizer", "T5TokenizerFast")
_QWEN_WORDS, _GEMMA_WORDS = ("Qwen2Tokenizer", "Qwen2TokenizerFast"), ("GemmaTokenizer", "GemmaTokenizerFast")
_KL = ("AutoencoderKL",)

Parts = Mapping[str, tuple[str, ...]]
Does = tuple[Literal["draw", "instruct", "inpaint"], ...]
_SD: Parts = {
    **{"unet": ("UNet2DConditionModel",), "vae": _KL, "scheduler": _ODE},
    **{"text_encoder": _CLIP, "tokenizer": _CLIP_WORDS},
}
_SDXL: Parts = {**_SD, "text_encoder_2": _POOLED, "tokenizer_2": _CLIP_WORDS}
_SD3: Parts = {
    **{"transformer": ("SD3Transformer2DModel",), "vae": _KL, "scheduler": _FLOW},
    **{"text_encoder": _POOLED, "text_encoder_2": _POOLED, "text_encoder_3": _T5},
    **{"tokenizer": _CLIP_WORDS, "tokenizer_2": _CLIP_WORDS, "tokenizer_3": _T5_WORDS},
}
_FLUX: Parts = {
    **{"transformer": ("FluxTransformer2DModel",), "vae": _KL, "scheduler": _FLOW},
    **{"text_encoder": _CLIP, "tokenizer": _CLIP_WORDS, "text_encoder_2": _T5, "tokenizer_2": _T5_WORDS},
}
_QWEN: Parts = {
    **{"transformer": ("QwenImageTransformer2DModel",), "vae": ("AutoencoderKLQwenImage",), "scheduler": _FLOW},
    **{"text_encoder": ("Qwen2_5_VLForConditionalGeneration",), "tokenizer": _QWEN_WORDS},
}
_QWEN_SEEING: Parts = {**_QWEN, "processor": ("Qwen2VLProcessor",)}
_PIXART: Parts = {
    **{"transformer": ("PixArtTransformer2DModel",), "vae": _KL, "scheduler": _ODE},
    **{"text_encoder": _T5, "tokenizer": _T5_WORDS},
}
_Z: Parts = {
    **{"transformer": ("ZImageTransformer2DModel",), "vae": _KL, "scheduler": _FLOW},
    **{"text_encoder": ("Qwen3Model", "Qwen3ForCausalLM"), "tokenizer": _QWEN_WORDS},
}


@dataclass(frozen=True, slots=True)
class Row:
    """What one class of pipelines is made of, and what it is given.

    parts: the classes that each may have. does: ``draw``; of editors what they are told: ``instruct``, or ``inpaint``
    with a mask. optional: parts that a folder may lack. flags: truth values that model_index.json may set, with their
    defaults. made_with, given: further arguments of the class, and of each call. guidance: the call's name of the scale
    of classifier-free guidance. negative: whether that needs a negative prompt, which is a blank. alone: whether
    captions are padded to the longest of their pass, so that a pass has one. framed: tokens, at most, that the pipeline
    adds to a prompt. opens: a class whose folders this one takes too.
    """

    parts: Parts
    does: Does = ("draw",)
    optional: tuple[str, ...] = ()
    flags: Mapping[str, bool] = field(default_factory=dict)
    made_with: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    guidance: str = "guidance_scale"
    negative: bool = False
    alone: bool = False
    framed: int = 0
    opens: str = ""


_UNCHECKED: Mapping[str, Any] = {"requires_safety_checker": False}
_UNMARKED: Mapping[str, Any] = {"add_watermarker": False}  # otherwise it hangs on what else is installed
_ZEROS = {"force_zeros_for_empty_prompt": True}
_AS_ASKED: Mapping[str, Any] = {"use_resolution_binning": False, "clean_caption": False}
_TOLD: Does = ("instruct",)
_MASKED: Does = ("inpaint",)
_NO_T5 = ("text_encoder_3", "tokenizer_3")
_TRUE: Mapping[str, Any] = {"guidance": "true_cfg_scale", "negative": True, "alone": True}

PIPELINES: Mapping[str, Row] = {
    "StableDiffusionPipeline": Row(_SD, made_with=_UNCHECKED),
    "LatentConsistencyModelPipeline": Row(_SD, made_with=_UNCHECKED),
    "StableDiffusionXLPipeline": Row(_SDXL, flags=_ZEROS, made_with=_UNMARKED),
    "StableDiffusion3Pipeline": Row(_SD3, optional=_NO_T5),
    "FluxPipeline": Row(_FLUX),
    "Flux2KleinPipeline": Row(
        {
            **{"transformer": ("Flux2Transformer2DModel",), "vae": ("AutoencoderKLFlux2",), "scheduler": _FLOW},
            **{"text_encoder": ("Qwen3ForCausalLM",), "tokenizer": _QWEN_WORDS},
        },
        ("draw", "instruct"),
        flags={"is_distilled": False},
        framed=16,
    ),
    "QwenImagePipeline": Row(_QWEN, **_TRUE),
    "SanaPipeline": Row(
        {
            **{"transformer": ("SanaTransformer2DModel",), "vae": ("AutoencoderDC",), "scheduler": (*_ODE, *_FLOW)},
            **{"text_encoder": ("Gemma2Model",), "tokenizer": _GEMMA_WORDS},
        },
        given=_AS_ASKED,
    ),
    "PixArtAlphaPipeline": Row(_PIXART, given=_AS_ASKED),
    "PixArtSigmaPipeline": Row(_PIXART, given=_AS_ASKED),
    "ZImagePipeline": Row(_Z, alone=True, framed=16),
    "Lumina2Pipeline": Row(
        {
            **{"transformer": ("Lumina2Transformer2DModel",), "vae": _KL, "scheduler": _FLOW},
            **{"text_encoder": ("Gemma2Model",), "tokenizer": _GEMMA_WORDS},
        },
        framed=48,
    ),
    "StableDiffusionInstructPix2PixPipeline": Row(_SD, _TOLD, made_with=_UNCHECKED),
    "FluxKontextPipeline": Row(_FLUX, _TOLD, given={"_auto_resize": False}),
    "QwenImageEditPipeline": Row(_QWEN_SEEING, _TOLD, **_TRUE),
    "QwenImageEditPlusPipeline": Row(_QWEN_SEEING, _TOLD, **_TRUE),
    "StableDiffusionInpaintPipeline": Row(_SD, _MASKED, made_with=_UNCHECKED, opens="StableDiffusionPipeline"),
    "StableDiffusionXLInpaintPipeline": Row(
        *(_SDXL, _MASKED),
        flags={**_ZEROS, "requires_aesthetics_score": False},
        made_with=_UNMARKED,
        opens="StableDiffusionXLPipeline",
    ),
    "StableDiffusion3InpaintPipeline": Row(_SD3, _MASKED, optional=_NO_T5, opens="StableDiffusion3Pipeline"),
    "FluxFillPipeline": Row(_FLUX, _MASKED),
    "FluxInpaintPipeline": Row(_FLUX, _MASKED, opens="FluxPipeline"),
    "QwenImageInpaintPipeline": Row(_QWEN, _MASKED, opens="QwenImagePipeline", **_TRUE),
    "ZImageInpaintPipeline": Row(_Z, _MASKED, alone=True, framed=16, opens="ZImagePipeline"),
}

#: How Qwen3 writes a user's turn, instead of the template of a folder, which is a program.
CHAT = (
    "{% for one in messages %}<|im_start|>{{ one.role }}\n{{ one.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


def classes(editing: bool) -> list[str]:
    """Names of the classes that edit, or of those that draw."""
    return [name for name, row in PIPELINES.items() if (row.does != ("draw",) if editing else "draw" in row.does)]


def row_for(folders_class: str, editing: bool) -> tuple[str, Row] | None:
    """The class that opens a folder of some class, to draw or to edit; None where there is none."""
    for name, row in PIPELINES.items():
        if folders_class in (name, row.opens) and name in classes(editing):
            return name, row
    return None
