"""The settings of the engine ``small-world``."""

from typing import Literal

from twinset.models.visual_questions.settings import QuestionAnswererSettings, VisualQuestionAnswerer


class SmallWorld(QuestionAnswererSettings):
    """A program of twinset-demo that finds shapes and colours in pictures of the small model; no network.

    It has no settings.
    """

    kind: Literal["small-world"]

    def open(self) -> VisualQuestionAnswerer:
        """As `EngineSettings.open`."""
        from twinset_demo.small_world.engine import SmallWorldChecker

        return SmallWorldChecker()
