"""BLIP and ViLT, asked for yes or no (Li et al. 2022; Kim et al. 2021), in float32.

The image is encoded once for all its questions. A pass has a fixed number of questions, each padded to a fixed length,
so that an answer does not depend on the others.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from PIL import Image
from transformers import BlipImageProcessor, ViltImageProcessor

from twinset.contracts.errors import WrongUse
from twinset.models.device import GPU, inference, within_memory
from twinset.models.engines import LocalEngine
from twinset.models.files import ModelFiles
from twinset.models.language_models.answers import NOT_A_NUMBER, REFUSED, Answer, Request, by_images
from twinset.models.loading import load_beside, load_with_tokenizer
from twinset.models.visual_questions.settings import VisualQuestions, model_type

LONGEST = 40  # tokens of a question: all that ViLT reads, and three times what a question has
PATCHES = 0  # seed of the order in which ViLT reads the patches of an image: its sum is rounded by it


class _Network(ABC):
    """What both have. device: as torch names it."""

    def __init__(self, model: str, images: type[Any], files: ModelFiles, settings: VisualQuestions) -> None:
        self.name = settings.model
        self.device = "cpu" if settings.device == "cpu" else GPU
        self.images: Any = load_beside(images, files.folder)
        self.tokenizer, network = load_with_tokenizer(model, files, "float32")
        self.model: Any = network.to(self.device)

    @abstractmethod
    def see(self, image: Image.Image) -> Any:
        """What `logits` needs of an image."""

    @abstractmethod
    def logits(self, seen: Any, tokens: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of yes and no, one a question. tokens: of a pass."""


class _Blip(_Network):
    """Generates an answer: the first token decides between yes and no."""

    def __init__(self, files: ModelFiles, settings: VisualQuestions) -> None:
        super().__init__("BlipForQuestionAnswering", BlipImageProcessor, files, settings)
        ids = self.tokenizer(["yes", "no"], add_special_tokens=False)["input_ids"]
        unknown = self.tokenizer.unk_token_id
        if any(len(word) != 1 or word[0] == unknown for word in ids):
            raise WrongUse(f"{self.name}: its tokenizer has no token for yes or no; name another model")
        (self.yes,), (self.no,) = ids

    def see(self, image: Image.Image) -> torch.Tensor:
        """The encoded image, (1, patches + 1, channels)."""
        pixels = self.images(images=[image], return_tensors="pt").to(self.device)
        encoded: torch.Tensor = self.model.vision_model(**pixels).last_hidden_state
        return encoded

    def logits(self, seen: torch.Tensor, tokens: Any) -> tuple[torch.Tensor, torch.Tensor]:
        count, mask = len(tokens["input_ids"]), tokens["attention_mask"]
        encoded = seen.expand(count, -1, -1)
        asked = self.model.text_encoder(
            input_ids=tokens["input_ids"],
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

    def __init__(self, files: ModelFiles, settings: VisualQuestions) -> None:
        super().__init__("ViltForQuestionAnswering", ViltImageProcessor, files, settings)
        labels = self.model.config.label2id
        if "yes" not in labels or "no" not in labels:
            raise WrongUse(f"{self.name}: yes and no are not among its answers; name a model tuned for questions")
        self.yes, self.no = labels["yes"], labels["no"]

    def see(self, image: Image.Image) -> tuple[torch.Tensor, torch.Tensor]:
        """The embedded patches, (1, patches + 1, channels), and their mask."""
        pixels = self.images(images=[image], return_tensors="pt").to(self.device)
        with torch.random.fork_rng(devices=[]):  # patches are read in a random order
            torch.manual_seed(PATCHES)
            embedded, mask, _ = self.model.vilt.embeddings.visual_embed(
                pixels["pixel_values"], pixels["pixel_mask"], max_image_length=self.model.config.max_image_length
            )
        return embedded, mask

    def logits(self, seen: tuple[torch.Tensor, torch.Tensor], tokens: Any) -> tuple[torch.Tensor, torch.Tensor]:
        embedded, mask = seen
        count = len(tokens["input_ids"])
        out = self.model(**tokens, image_embeds=embedded.expand(count, -1, -1), pixel_mask=mask.expand(count, -1))
        return out.logits[:, self.yes], out.logits[:, self.no]


class LocalModel(LocalEngine[VisualQuestions]):
    """As `models.language_models.answers.LanguageModel`, of requests for yes or no about one image."""

    name = "answers"

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """As `LanguageModel.ask`; a question that is longer than the network reads is refused."""
        network = self.loaded
        with inference(self.threads):
            groups = [within_memory(partial(self._about, network, group)) for group in by_images(requests)]
        return [answer for answers in groups for answer in answers]

    def _about(self, network: _Network, requests: Sequence[Request]) -> list[Answer]:
        """Answers to requests about one image."""
        questions = [request.text for request in requests]
        lengths = [len(ids) for ids in network.tokenizer(questions)["input_ids"]]
        fitting = [question for question, length in zip(questions, lengths, strict=True) if length <= LONGEST]
        (image,) = requests[0].images
        seen, shares = network.see(image.pixels), list[float]()
        for start in range(0, len(fitting), self.micro_batch):
            batch = fitting[start : start + self.micro_batch]
            full = batch + batch[-1:] * (self.micro_batch - len(batch))
            tokens = network.tokenizer(full, padding="max_length", max_length=LONGEST, return_tensors="pt")
            yes, no = network.logits(seen, tokens.to(network.device))
            # p = exp(yes) / (exp(yes) + exp(no)): the probability of yes among yes and no.
            shares += (yes.double() - no.double()).sigmoid().tolist()[: len(batch)]
        answers = iter(Answer(finish=NOT_A_NUMBER) if share != share else Answer(probability=share) for share in shares)
        return [
            next(answers) if length <= LONGEST else Answer(f"{length} tokens, {LONGEST} are read", REFUSED)
            for length in lengths
        ]

    def load(self) -> _Network:
        files = self.settings.files()
        return (_Blip if model_type(files) == "blip" else _Vilt)(files, self.settings)
