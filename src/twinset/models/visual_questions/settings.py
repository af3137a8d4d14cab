"""The settings of models in this process that see, and which files these have."""

from typing import Literal

from pydantic import Field

from twinset.contracts.errors import WrongUse
from twinset.models.engines import LocalSettings
from twinset.models.files import (
    MORE_TEMPLATES,
    TOKENIZERS,
    WEIGHTS,
    Layout,
    ModelFiles,
    check_type,
    find_model,
    read_json,
)
from twinset.models.language_models.settings import INSTRUCTION, LanguageModelSettings

WORDS = ("tokenizer.json", "vocab.txt")
_IMAGES = ("preprocessor_config.json", "processor_config.json")
QUESTIONS = Layout(
    "A model is a BLIP or ViLT folder with config.json, model.safetensors, preprocessor_config.json and tokenizer.json "
    "or vocab.txt",
    (("config.json",), WEIGHTS, ("preprocessor_config.json",), WORDS),
    (
        *("config.json", WEIGHTS, *_IMAGES, *WORDS),
        *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    ),
)
_SAFE = WEIGHTS[:2]
CHATS = Layout(
    "A multimodal language model is a folder as transformers saves it: config.json, model.safetensors, tokenizer.json "
    "and preprocessor_config.json or processor_config.json; nothing else is loaded",
    (("config.json",), _SAFE, _IMAGES, ("tokenizer.json",)),
    (
        *("config.json", "generation_config.json", *_IMAGES, "video_preprocessor_config.json"),
        *("chat_template.jinja", "chat_template.json", MORE_TEMPLATES, *TOKENIZERS, _SAFE),
        *("qformer_tokenizer/tokenizer.json", "qformer_tokenizer/tokenizer_config.json"),
    ),
)
ENCODING = ("blip-2", "instructblip")  # `models.visual_questions.vision_language.EncoderDecoder`


class VisualQuestions(LocalSettings, LanguageModelSettings):
    """A BLIP or ViLT model for visual question answering in this process, by Hugging Face's transformers.

    model: a folder, or an id of the hub whose files are in the local cache, such as ``Salesforce/blip-vqa-base``.
    device, threads: as `OnDevice`. micro_batch: questions a pass, all of one image; halved for a shard when memory runs
    out.
    """

    kind: Literal["vqa"]
    micro_batch: int = Field(default=16, ge=1, le=1024)

    sees = True
    writes = False
    worker = "twinset.models.visual_questions.local_model:LocalModel"

    def files(self) -> ModelFiles:
        return find_answerer(self.model)


class VisionLanguage(LocalSettings, LanguageModelSettings):
    """A multimodal language model in this process, by Hugging Face's transformers.

    It takes the likeliest token each time, and reads the turns of a chat as one. How likely an answer is yes rather
    than no is told by its first token.

    model: a folder with ``model.safetensors``, or an id of the hub whose files are in the local cache. device, threads:
    as `OnDevice`. max_tokens: that an answer may have.
    """

    kind: Literal["vlm"]
    micro_batch: Literal[1] = 1
    max_tokens: int = Field(default=350, ge=1, le=100_000)

    sees = True
    instruction = INSTRUCTION
    worker = "twinset.models.visual_questions.vision_language:LocalChats"

    def files(self) -> ModelFiles:
        return find_vision_language(self.model)


def find_answerer(name: str) -> ModelFiles:
    """The files of a model for `VisualQuestions` by its folder or its hub id.

    Raises `ModelMissing`, or `WrongUse` for another kind of model.
    """
    files = find_model(name, QUESTIONS)
    check_type(files.folder / "config.json", ("blip", "vilt"))
    return files


def find_vision_language(name: str) -> ModelFiles:
    """The files of a model for `VisionLanguage` by its folder or hub id.

    Raises `ModelMissing`, or `WrongUse` for one that encodes texts and is none of `ENCODING`.
    """
    files = find_model(name, CHATS)
    if has_encoder(files) and model_type(files) not in ENCODING:
        raise WrongUse(f"{files.folder}: has an encoder of texts beside its decoder; name a Qwen-VL, LLaVA or InternVL")
    return files


def has_encoder(files: ModelFiles) -> bool:
    """Whether a model encodes texts beside its decoder."""
    config = read_json(files.folder / "config.json")
    text = config.get("text_config")
    inner = text if isinstance(text, dict) else {}
    return bool(config.get("is_encoder_decoder") or inner.get("is_encoder_decoder") or inner.get("model_type") == "t5")


def model_type(files: ModelFiles) -> object:
    """The ``model_type`` of a model's configuration."""
    return read_json(files.folder / "config.json").get("model_type")
