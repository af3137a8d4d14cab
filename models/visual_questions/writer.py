"""A multimodal language model in this process as `models.language_models.answers.LanguageModel`."""

from collections.abc import Sequence
from functools import partial

from twinset.models.device import inference, within_memory
from twinset.models.encoders.contract import Running
from twinset.models.engines import LocalEngine
from twinset.models.language_models.answers import REFUSED, Answer, Request, Schema, tally_of
from twinset.models.visual_questions.encoder_decoder import open_vision_language
from twinset.models.visual_questions.settings import Writer
from twinset.models.visual_questions.vision_language import ImageRefused, VisionLanguageModel
from twinset.shards.media.decode import decode
from twinset.shards.metering import count


class LocalWriter(LocalEngine[Writer]):
    """As `LanguageModel`; the prompt alone asks for the schema."""

    name = "language_model"

    def answers(self, requests: Sequence[Request], schema: Schema) -> list[Answer]:
        """As `LanguageModel.answers`, one request after the other."""
        model = self.loaded
        with inference(self.threads):
            found = [within_memory(partial(self._answer, model, one)) for one in requests]
        for one in found:
            count(tally_of(one))
        return found

    def _answer(self, model: VisionLanguageModel, asked: Request) -> Answer:
        images = [decode(one.content, one.name) for one in asked.images]
        try:
            return model.write(images, "\n\n".join(one.content for one in asked.messages), self.settings.max_tokens)
        except ImageRefused as error:
            return Answer(str(error), REFUSED)

    def load(self) -> VisionLanguageModel:
        return open_vision_language(self.settings.model, Running(self.settings.device, 1, self.threads))
