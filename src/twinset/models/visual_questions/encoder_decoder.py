"""Multimodal language models with an encoder and a decoder of texts: BLIP-2 and InstructBLIP with T5.

The encoder reads an image and a prompt, without a chat around it, and the decoder writes the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinset.models.encoders.contract import NotApplicable, Running
from twinset.models.visual_questions.vision_language import VisionLanguageModel, find_vision_language, has_encoder

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image


class EncoderDecoder(VisionLanguageModel):
    """As `VisionLanguageModel`. BLIP-2 sees an image once for all prompts; InstructBLIP once a prompt, with which its
    Q-Former reads it.
    """

    def prepare(self) -> None:
        self.start = self.model.config.text_config.decoder_start_token_id

    def prompt(self, images: int, text: str) -> str:
        if images != 1:
            raise NotApplicable(
                f"{self.folder}: reads one image, and a prompt shows it {images}; name a prompt with images: joined"
            )
        return text

    def before(self, prompt: int) -> int:
        return 1  # where its decoder starts

    def _passes(self, images: Sequence[Image], prompts: Sequence[str]) -> list[torch.Tensor]:
        import torch

        found, seen = list[torch.Tensor](), None
        start = torch.tensor([[self.start]], device=self.device)
        with torch.inference_mode():
            for prompt in prompts:
                read = self._read(images, prompt)
                pixels = {key: read[key] for key in read if key == "pixel_values" or key.startswith("qformer")}
                if seen is None or len(pixels) > 1:
                    seen = self.model.get_image_features(**pixels, return_dict=True)
                    self.images_read += 1
                read |= {"pixel_values": None, "mm_encoder_outputs": {"image": seen}}
                found.append(self.model(**read, decoder_input_ids=start).logits[0, -1].float().log_softmax(-1))
        return found


def open_vision_language(name: str, running: Running) -> VisionLanguageModel:
    """The model of a folder; raises as `find_vision_language`."""
    files = find_vision_language(name)
    return (EncoderDecoder if has_encoder(files) else VisionLanguageModel)(name, running)
