"""BLIP and ViLT, asked for yes or no (Li et al. 2022; Kim et al. 2021), in float32 from safetensors.

The image is encoded once for all its questions. A pass has a fixed number of questions, each padded to a fixed length,
so that an answer does not depend on the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from twinset.contracts.errors import WrongUse
from twinset.models.engines import LocalEngine
from twinset.models.files import ModelFiles
from twinset.models.loading import load_beside, load_with_tokenizer
from twinset.models.visual_questions.settings import Answers, Inquiry, Transformers, Unanswered, architecture
from twinset.shards.media.decode import decode

if TYPE_CHECKING:
    import torch
    from PIL import Image

LONGEST = 40  # tokens of a question: all that ViLT reads, and three times what a question has
PATCHES = 0  # seed of the order in which ViLT reads the patches of an image: its sum is rounded by it


class LocalModel(LocalEngine[Transformers]):
    """An engine (`models.visual_questions.settings.VisualQuestionAnswerer`) in this process."""

    name = "answers"

    def answers(self, inquiries: Sequence[Inquiry]) -> list[Answers]:
        from twinset.models.device import inference, within_memory

        network = self.loaded
        with inference(self.threads):
            return [within_memory(partial(self._answer, network, one)) for one in inquiries]

    def _answer(self, network: _Network, inquiry: Inquiry) -> Answers:
        questions = inquiry.questions
        lengths = [len(ids) for ids in network.tokenizer(list(questions))["input_ids"]] if questions else []
        for question, length in zip(questions, lengths, strict=True):
            if length > LONGEST:
                return Unanswered("question-too-long", f"{length} tokens, {LONGEST} are read: {question[:200]}")
        seen = network.see(decode(inquiry.image, inquiry.key)) if questions else None
        found: list[float] = []
        for start in range(0, len(questions), self.micro_batch):
            some = list(questions[start : start + self.micro_batch])
            full = some + some[-1:] * (self.micro_batch - len(some))
            said = network.tokenizer(full, padding="max_length", max_length=LONGEST, return_tensors="pt")
            yes, no = network.logits(seen, said.to(network.device))
            # p = exp(yes) / (exp(yes) + exp(no)): the probability of yes among yes and no.
            found += (yes.double() - no.double()).sigmoid().tolist()[: len(some)]
        for question, one in zip(questions, found, strict=True):
            if not 0 <= one <= 1:  # NaN, by broken weights
                return Unanswered("no-answer", f"{one} for {question[:200]}")
        return found

    def load(self) -> _Network:
        files = self.settings.files()
        return (_Blip if architecture(files) == "blip" else _Vilt)(files, self.settings)


class _Network(ABC):
    """What both have. device: as torch names it."""

    def __init__(self, model: str, images: type[Any], files: ModelFiles, settings: Transformers) -> None:
        from twinset.models.device import GPU

        self.name = settings.model
        self.device = "cpu" if settings.device == "cpu" else GPU
        self.images: Any = load_beside(images, files.folder)
        self.tokenizer, network = load_with_tokenizer(model, files, "float32")
        self.model: Any = network.to(self.device)

    @abstractmethod
    def see(self, image: Image.Image) -> Any:
        """What `logits` needs of an image."""

    @abstractmethod
    def logits(self, seen: Any, said: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of yes and no, one a question. said: the tokens of a pass."""


class _Blip(_Network):
    """Generates an answer: the first token decides between yes and no."""

    def __init__(self, files: ModelFiles, settings: Transformers) -> None:
        from transformers import BlipImageProcessor

        super().__init__("BlipForQuestionAnswering", BlipImageProcessor, files, settings)
        ids = self.tokenizer(["yes", "no"], add_special_tokens=False)["input_ids"]
        unknown = self.tokenizer.unk_token_id
        if any(len(one) != 1 or one[0] == unknown for one in ids):
            raise WrongUse(f"{self.name}: its tokenizer has no token for yes or no; name another model")
        (self.yes,), (self.no,) = ids

    def see(self, image: Image.Image) -> torch.Tensor:
        """The encoded image, (1, patches + 1, channels)."""
        pixels = self.images(images=[image], return_tensors="pt").to(self.device)
        encoded: torch.Tensor = self.model.vision_model(**pixels).last_hidden_state
        return encoded

    def logits(self, seen: torch.Tensor, said: Any) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        count, mask = len(said["input_ids"]), said["attention_mask"]
        encoded = seen.expand(count, -1, -1)
        asked = self.model.text_encoder(
            input_ids=said["input_ids"],
            attention_mask=mask,
            encoder_hidden_states=encoded,
            encoder_attention_mask=torch.ones(encoded.shape[:2], dtype=torch.long, device=self.device),
        ).last_hidden_state
        begin = torch.full((1, 1), self.model.decoder_start_token_id, device=self.device)
        # One question at a time, without its padding: transformers 5 drops the mask of a cross-attention.
        first = [
            self.model.text_decoder(input_ids=begin, encoder_hidden_states=states[None, :length]).logits[0, -1]
            for states, length in zip(asked, mask.sum(1).tolist(), strict=True)
        ]
        logits = torch.stack(first)
        return logits[:, self.yes], logits[:, self.no]


class _Vilt(_Network):
    """Chooses among answers: two of them are yes and no."""

    def __init__(self, files: ModelFiles, settings: Transformers) -> None:
        from transformers import ViltImageProcessor

        super().__init__("ViltForQuestionAnswering", ViltImageProcessor, files, settings)
        labels = self.model.config.label2id
        if "yes" not in labels or "no" not in labels:
            raise WrongUse(f"{self.name}: yes and no are not among its answers; name a model tuned for questions")
        self.yes, self.no = labels["yes"], labels["no"]

    def see(self, image: Image.Image) -> tuple[torch.Tensor, torch.Tensor]:
        """The embedded patches, (1, patches + 1, channels), and their mask."""
        import torch

        pixels = self.images(images=[image], return_tensors="pt").to(self.device)
        with torch.random.fork_rng(devices=[]):  # patches are read in a random order
            torch.manual_seed(PATCHES)
            embedded, mask, _ = self.model.vilt.embeddings.visual_embed(
                pixels["pixel_values"], pixels["pixel_mask"], max_image_length=self.model.config.max_image_length
            )
        return embedded, mask

    def logits(self, seen: tuple[torch.Tensor, torch.Tensor], said: Any) -> tuple[torch.Tensor, torch.Tensor]:
        embedded, mask = seen
        count = len(said["input_ids"])
        out = self.model(**said, image_embeds=embedded.expand(count, -1, -1), pixel_mask=mask.expand(count, -1))
        return out.logits[:, self.yes], out.logits[:, self.no]
