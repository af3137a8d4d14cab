"""The settings of models that are asked: on a server, or in this process. Those that see have a room of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, SerializeAsAny, model_validator

from twinset.contracts.doors import Registry
from twinset.models.engines import EngineSettings, LocalSettings
from twinset.models.files import (
    MORE_TEMPLATES,
    WEIGHTS,
    Layout,
    ModelFiles,
    ModelMissing,
    find_model,
    local_folder,
    refuse_adapter,
)
from twinset.models.paid_server import PaidServer
from twinset.shards.metering import Tally

LAYOUT = Layout(
    "A language model is a folder with config.json, tokenizer.json and model.safetensors, or with one .gguf file; "
    "nothing else is loaded",
    (("config.json",), ("tokenizer.json",), WEIGHTS[:2]),
    (WEIGHTS[:2],),
)
#: Files that enter the digest.
PARTS = ("*.safetensors", "*.json", "*.jinja", MORE_TEMPLATES, "*.model", "merges.txt", "vocab.txt")
INSTRUCTION = "Answer the question about the image with one word, yes or no."


class LanguageModelSettings(EngineSettings):
    """Settings of a model that is asked (`models.language_models.answers.LanguageModel`).

    local: whether its network runs in this process. sees: whether it reads images that a request shows, and answers
    with one of two words. writes: whether it answers in words of its own. instruction: what follows a question with the
    answer yes or no.
    """

    local: ClassVar[bool] = True
    sees: ClassVar[bool] = False
    writes: ClassVar[bool] = True
    instruction: ClassVar[str] = ""


class OpenAI(PaidServer, LanguageModelSettings):
    """A model on a server that speaks OpenAI's API: vLLM, Ollama, TGI, ``transformers serve``, OpenAI's own.

    Every answer is kept in a folder at once, by digest of base_url, model, messages, images, parameters and seed, and
    asked for never again; what the server refuses is asked for again in the next build. Costs are counted over all
    answers of a model in that folder, by whatever build.

    model, base_url, api_key_variable, answers, concurrency, timeout, retries, longest_wait: as `PaidServer`.
    temperature, top_p: as `Transformers`. max_tokens: that an answer may have; 350 when absent, and 1 of an answer that
    is yes or no. answer_format: whether an answer is held to its JSON schema, or asked for it by the prompt alone.
    token_limit: the parameter that bounds an answer, which differs between servers. price_in, price_out: of a million
    tokens read and written. max_cost: that all answers may cost, in the unit of the prices. image_tokens: the most that
    an image may take, to stay below ``max_cost``.
    """

    kind: Literal["openai"]
    temperature: float = Field(default=0.7, ge=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1, le=100_000)
    answer_format: Literal["json-schema", "text"] = "json-schema"
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    price_in: float = Field(default=0, ge=0)
    price_out: float = Field(default=0, ge=0)
    image_tokens: int = Field(default=4096, ge=1)

    execution = (*PaidServer.execution, "token_limit", "price_in", "price_out", "image_tokens")
    local = False
    sees = True  # where its model does
    instruction = INSTRUCTION
    worker = "twinset.models.language_models.server_model:ServerModel"

    @model_validator(mode="after")
    def _cost_can_be_counted(self) -> OpenAI:
        if self.max_cost is not None and not (self.price_in or self.price_out):
            raise ValueError("max_cost needs price_in and price_out, the prices of a million tokens")
        return self

    def cost(self, spent: Tally) -> float | None:
        if not (self.price_in or self.price_out):
            return None
        return (spent.prompt_tokens * self.price_in + spent.completion_tokens * self.price_out) / 1e6


class Transformers(LocalSettings, LanguageModelSettings):
    """A model in this process, by Hugging Face's transformers.

    model: a folder of safetensors or with one GGUF file, such a file, or an id of the hub whose files are in the local
    cache. temperature: of sampling; 0 takes the likeliest token. top_p: share of the probability (0-1) that is sampled
    from. max_tokens: that an answer may have. precision: of the network; ``auto`` is float32 on the CPU and bfloat16 on
    a GPU. device, threads: as `OnDevice`. micro_batch: answers that are written at a time; halved for a shard when
    memory runs out.
    """

    kind: Literal["transformers"]
    temperature: float = Field(default=0.7, ge=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=350, ge=1, le=100_000)
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"

    extra = "language-models"
    metered = True
    worker = "twinset.models.language_models.local_model:LocalModel"

    def files(self) -> ModelFiles:
        return find_language_model(self.model)


def find_language_model(name: str) -> ModelFiles:
    """The files of a model by its folder, its GGUF file or its hub id.

    Raises:
        ModelMissing: there is none, or it is of another form; the message says what to do.
        WrongUse: an adapter lies beside it.
    """
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ModelMissing(f"there is no file {name}. {LAYOUT.words}")
        refuse_adapter(path.parent)
        return ModelFiles(path.parent, (path,))
    folder = local_folder(name, LAYOUT.words)
    packed = sorted(folder.glob("*.gguf"))
    if packed and not any(folder.glob("*.safetensors")):
        if len(packed) > 1:
            raise ModelMissing(f"{folder}: has {len(packed)} GGUF files; name one of them, such as {packed[0]}")
        return ModelFiles(folder, (packed[0],))
    used = {*find_model(name, LAYOUT).paths, *(path for part in PARTS for path in folder.glob(part) if path.is_file())}
    return ModelFiles(folder, tuple(sorted(used)))


KINDS = {
    "openai": f"{__name__}:OpenAI",
    "transformers": f"{__name__}:Transformers",
    "vlm": "twinset.models.visual_questions.settings:VisionLanguage",
    "vqa": "twinset.models.visual_questions.settings:VisualQuestions",
}
LANGUAGE_MODELS = Registry[type[LanguageModelSettings]](
    "language model", LanguageModelSettings, __name__, "twinset.language_models"
)


def _seeing(model: LanguageModelSettings) -> LanguageModelSettings:
    if not model.sees:
        raise ValueError(f"a model of kind {model.kind} reads no images; name one of kind openai, vlm or vqa")
    return model


def _writing(model: EngineSettings) -> EngineSettings:
    if not getattr(model, "writes", True):
        raise ValueError(f"a model of kind {model.kind} writes no texts; name one of kind openai, transformers or vlm")
    return model


#: Marks of a setting that names a model: it must see, or write.
SEEING, WRITING = AfterValidator(_seeing), AfterValidator(_writing)
SeeingModel = Annotated[SerializeAsAny[LanguageModelSettings], LANGUAGE_MODELS, SEEING]
