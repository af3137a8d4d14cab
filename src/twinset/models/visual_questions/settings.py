"""The engines that answer questions about images: their settings, and the protocol that all keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import Field, SerializeAsAny

from twinset.contracts.doors import Registry
from twinset.contracts.errors import BuildFailed
from twinset.models.engines import Engine, EngineSettings, LocalSettings
from twinset.models.files import WEIGHTS, Layout, ModelFiles, ModelMissing, find_model, read_json
from twinset.models.language_models.settings import LanguageModelSettings, OpenAI


@dataclass(frozen=True, slots=True)
class Inquiry:
    """An image and what is asked of it.

    key: of the image, for messages. image: encoded as JPEG, PNG or WebP. media_type: such as ``image/jpeg``.
    questions: with the answer yes or no, each once.
    """

    key: str
    image: bytes
    media_type: str
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why an inquiry has no answers. reason: one of the settings' `reasons`. detail: for people."""

    reason: str
    detail: str


#: Probabilities of yes, 0 to 1, in the order of the questions; or why there are none.
Answers = list[float] | Unanswered


class VisualQuestionAnswerer(Engine, Protocol):
    """A model at work that answers yes/no questions about images. micro_batch: questions; for servers, images."""

    def answers(self, inquiries: Sequence[Inquiry]) -> list[Answers]:
        """What is answered to each inquiry, in order.

        Raises:
            BrokenTar: an image cannot be read.
            BuildFailed: the model cannot be used now; running the same command again resumes.
            OutOfMemory: a pass does not fit into memory.
        """


def answers_of(engine: VisualQuestionAnswerer, kind: str, inquiries: Sequence[Inquiry]) -> list[Answers]:
    """What an engine, which may be somebody else's, answers; kind: its name.

    Raises `BuildFailed` where that is not a probability for each question; else as `VisualQuestionAnswerer.answers`.
    """
    given = engine.answers(inquiries)
    problem = "" if len(given) == len(inquiries) else f"gives {len(given):,} results for {len(inquiries):,} images"
    for one, said in zip(inquiries, given, strict=False):
        if isinstance(said, Unanswered) or (
            isinstance(said, list) and len(said) == len(one.questions) and all(map(_is_probability, said))
        ):
            continue
        problem = problem or f"{one.key}: answers {str(said)[:100]} to {len(one.questions)} questions"
    if problem:
        raise BuildFailed(f"{kind}: {problem}; an engine gives a probability, 0 to 1, for each: correct its package")
    return given


def _is_probability(value: object) -> bool:
    return isinstance(value, Real) and 0 <= float(value) <= 1


WORDS = ("tokenizer.json", "vocab.txt")
LAYOUT = Layout(
    "A model is a BLIP or ViLT folder with config.json, model.safetensors, preprocessor_config.json and tokenizer.json "
    "or vocab.txt",
    (("config.json",), WEIGHTS, ("preprocessor_config.json",), WORDS),
    (
        *("config.json", WEIGHTS, "preprocessor_config.json", *WORDS),
        *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    ),
)


INSTRUCTION = "Answer the question about the image with one word, yes or no."  # follows each question of a chat


class QuestionAnswererSettings(EngineSettings):
    """Settings of an engine that answers questions about images, light to import.

    Subclasses set ``kind`` as a `Literal`, and `reasons`: what those of its `Unanswered` mean.
    """

    reasons: ClassVar[Mapping[str, str]] = {"no-answer": "the model says neither yes nor no to a question"}


class Transformers(LocalSettings, QuestionAnswererSettings):
    """A BLIP or ViLT model for visual question answering in this process, by Hugging Face's transformers.

    model: a folder, or an id of the hub whose files are in the local cache, such as ``Salesforce/blip-vqa-base``.
    device, threads: as `OnDevice`. micro_batch: questions a pass, all of one image; halved for a shard when memory runs
    out.
    """

    kind: Literal["transformers"]
    micro_batch: int = Field(default=16, ge=1, le=1024)

    worker = "twinset.models.visual_questions.local_model:LocalModel"
    reasons: ClassVar[Mapping[str, str]] = {
        "question-too-long": "a question has more tokens than the model reads",
        **QuestionAnswererSettings.reasons,
    }

    def files(self) -> ModelFiles:
        return find_answerer(self.model)


class Server(OpenAI, QuestionAnswererSettings):
    """A vision-language model on a server that speaks OpenAI's API, with images as data URLs.

    Answers, retries and costs are those of `models.language_models.settings.OpenAI`.
    """

    temperature: Literal[0] = 0
    top_p: Literal[1] = 1
    max_tokens: int = Field(default=1, ge=1, le=100_000)
    answer_format: Literal["text"] = "text"

    worker = "twinset.models.visual_questions.server_model:VisionServer"
    reasons: ClassVar[Mapping[str, str]] = {
        "refused": "the server does not accept a question or the image",
        **QuestionAnswererSettings.reasons,
    }


class VisionLanguage(LocalSettings):
    """A multimodal language model in this process, by Hugging Face's transformers.

    model: a folder with ``model.safetensors``, or an id of the hub whose files are in the local cache. device, threads:
    as `OnDevice`.
    """

    kind: Literal["vlm"]
    micro_batch: Literal[1] = 1

    def files(self) -> ModelFiles:
        from twinset.models.visual_questions.vision_language import find_vision_language

        return find_vision_language(self.model)


class YesOrNo(VisionLanguage, QuestionAnswererSettings):
    """A multimodal language model in this process: how likely its answer is yes rather than no, by the first token."""

    worker = "twinset.models.visual_questions.vlm_engines:LocalAnswerer"
    reasons: ClassVar[Mapping[str, str]] = {
        "refused": "the model's processor does not take the image",
        **QuestionAnswererSettings.reasons,
    }


class Writer(VisionLanguage, LanguageModelSettings):
    """A multimodal language model in this process, as a language model that sees.

    It takes the likeliest token each time, and reads the turns of a chat as one.
    """

    temperature: Literal[0] = 0
    top_p: Literal[1] = 1

    local = True
    sees = True
    worker = "twinset.models.visual_questions.vlm_engines:LocalWriter"


def find_answerer(name: str) -> ModelFiles:
    """The files of a model by its folder or its hub id.

    Raises:
        ModelMissing: there is none, or it is another kind of model; the message says what to do.
        WrongUse: its config.json is broken.
    """
    found = find_model(name, LAYOUT)
    if (kind := architecture(found)) not in ("blip", "vilt"):
        raise ModelMissing(f"{found.folder}: is a model of type {kind!r}. {LAYOUT.words}")
    return found


def architecture(model: ModelFiles) -> Any:
    """The ``model_type`` of a model."""
    return read_json(model.folder / "config.json").get("model_type")


KINDS = {
    "openai": f"{__name__}:Server",
    "transformers": f"{__name__}:Transformers",
    "vlm": f"{__name__}:YesOrNo",
}
QUESTION_ANSWERERS = Registry[type[QuestionAnswererSettings]](
    "visual-question engine", QuestionAnswererSettings, __name__, "twinset.question_answerers"
)
QuestionAnswerer = Annotated[SerializeAsAny[QuestionAnswererSettings], QUESTION_ANSWERERS]
