"""The allow-list: pipelines of diffusers that are opened, and the classes of their parts. Their names stand here alone.

A model's model_index.json names its pipeline and the classes of its parts. What is not listed here is not opened.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

#: Text encoders of transformers, with the ``model_type`` of their config.json.
ENCODERS = {
    "CLIPTextModel": "clip_text_model",
    "CLIPTextModelWithProjection": "clip_text_model",
    "T5EncoderModel": "t5",
    "Qwen3Model": "qwen3",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen2_5_VLForConditionalGeneration": "qwen2_5_vl",
}
#: Tokenizers of transformers, by the name that folders give them. None reads code of its folder.
TOKENIZERS = {
    "CLIPTokenizer": "CLIPTokenizer",
    "T5Tokenizer": "T5TokenizerFast",
    "T5TokenizerFast": "T5TokenizerFast",
    "Qwen2Tokenizer": "Qwen2TokenizerFast",
    "Qwen2TokenizerFast": "Qwen2TokenizerFast",
}
PROCESSORS = ("Qwen2VLProcessor",)
FLOW = "FlowMatchEulerDiscreteScheduler"
SCHEDULERS = (
    *("DDIMScheduler", "DDPMScheduler", "DPMSolverMultistepScheduler", "EulerDiscreteScheduler"),
    *("EulerAncestralDiscreteScheduler", "LMSDiscreteScheduler", "PNDMScheduler", "UniPCMultistepScheduler", FLOW),
)
#: The classes that a part may have, by its name without a number.
ALLOWED: Mapping[str, tuple[str, ...]] = {
    "unet": ("UNet2DConditionModel",),
    "transformer": (
        *("SD3Transformer2DModel", "FluxTransformer2DModel", "Flux2Transformer2DModel"),
        *("QwenImageTransformer2DModel", "ZImageTransformer2DModel"),
    ),
    "vae": ("AutoencoderKL", "AutoencoderTiny", "AutoencoderKLFlux2", "AutoencoderKLQwenImage"),
    "scheduler": SCHEDULERS,
    "text_encoder": tuple(ENCODERS),
    "tokenizer": tuple(TOKENIZERS),
    "processor": PROCESSORS,
}
#: Parts of older folders that judge pictures or read other pictures. They are not loaded, whatever they are.
LEFT_OUT = frozenset({"safety_checker", "feature_extractor", "image_encoder"})
#: Parts that a folder may lack.
OPTIONAL = frozenset({"text_encoder_3", "tokenizer_3"})
#: Samplers that settings can name instead of the model's own, for noise schedules of UNets, and what they are given.
SAMPLERS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "euler": ("EulerDiscreteScheduler", {}),
    "ddim": ("DDIMScheduler", {"clip_sample": False}),  # latents have no bounds
    "dpm-solver++": ("DPMSolverMultistepScheduler", {"algorithm_type": "dpmsolver++"}),
}
#: What pipelines are made with and what each call is given, where their class takes it.
MADE_WITH = {"requires_safety_checker": False, "add_watermarker": False}
GIVEN = {"_auto_resize": False}

_SD = ("unet", "vae", "scheduler", "text_encoder", "tokenizer")
_SDXL = (*_SD, "text_encoder_2", "tokenizer_2")
_FLUX = ("transformer", *_SDXL[1:])
_SD3 = (*_FLUX, "text_encoder_3", "tokenizer_3")
_QWEN = ("transformer", *_SD[1:])

TRUE_CFG = "true_cfg_scale"
Does = Literal["draw", "instruct", "inpaint"]


@dataclass(frozen=True, slots=True)
class Row:
    """What one class of pipelines is made of, and what it is given.

    parts: what its folder names. does: ``draw``; of editors what they are told: ``instruct``, or ``inpaint`` with a
    mask. opens: a class whose folders this one takes too. guidance: the call's name of the scale of classifier-free
    guidance; `TRUE_CFG` needs a negative prompt, which is a blank. alone: whether captions are padded to the longest of
    their pass, so that a pass has one. framed: tokens, at most, that the pipeline's chat adds to a prompt.
    """

    parts: tuple[str, ...]
    does: tuple[Does, ...] = ("draw",)
    opens: str = ""
    guidance: str = "guidance_scale"
    alone: bool = False
    framed: int = 0


PIPELINES: Mapping[str, Row] = {
    "StableDiffusionPipeline": Row(_SD),
    "StableDiffusionXLPipeline": Row(_SDXL),
    "StableDiffusion3Pipeline": Row(_SD3),
    "FluxPipeline": Row(_FLUX),
    "Flux2KleinPipeline": Row(_QWEN, ("draw", "instruct"), framed=16),
    "QwenImagePipeline": Row(_QWEN, guidance=TRUE_CFG, alone=True),
    "ZImagePipeline": Row(_QWEN, alone=True, framed=16),
    "StableDiffusionInstructPix2PixPipeline": Row(_SD, ("instruct",)),
    "FluxKontextPipeline": Row(_FLUX, ("instruct",)),
    "QwenImageEditPipeline": Row((*_QWEN, "processor"), ("instruct",), guidance=TRUE_CFG, alone=True),
    "QwenImageEditPlusPipeline": Row((*_QWEN, "processor"), ("instruct",), guidance=TRUE_CFG, alone=True),
    "StableDiffusionInpaintPipeline": Row(_SD, ("inpaint",), "StableDiffusionPipeline"),
    "StableDiffusionXLInpaintPipeline": Row(_SDXL, ("inpaint",), "StableDiffusionXLPipeline"),
    "StableDiffusion3InpaintPipeline": Row(_SD3, ("inpaint",), "StableDiffusion3Pipeline"),
    "FluxFillPipeline": Row(_FLUX, ("inpaint",)),
    "FluxInpaintPipeline": Row(_FLUX, ("inpaint",), "FluxPipeline"),
    "QwenImageInpaintPipeline": Row(_QWEN, ("inpaint",), "QwenImagePipeline", TRUE_CFG, alone=True),
    "ZImageInpaintPipeline": Row(_QWEN, ("inpaint",), "ZImagePipeline", alone=True, framed=16),
}

#: How Qwen3 writes a user's turn, instead of the template of a folder, which is a program.
CHAT = (
    "{% for turn in messages %}<|im_start|>{{ turn.role }}\n{{ turn.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


def classes(editing: bool) -> list[str]:
    """Names of the classes that edit, or of those that draw."""
    return [name for name, row in PIPELINES.items() if (row.does != ("draw",) if editing else "draw" in row.does)]


def class_for(folders_class: object, editing: bool) -> str:
    """The class that opens a folder of some class, to draw or to edit; empty where there is none."""
    fitting = (name for name in classes(editing) if folders_class in (name, PIPELINES[name].opens))
    return next(fitting, "")
