"""The mean log-probability of a text's tokens under a causal language model."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twinset.contracts.errors import WrongUse
from twinset.generators.caption_scores.scorers.scorer import NetworkScorer, Scored, tokenize
from twinset.models.language_models.settings import find_language_model
from twinset.models.loading import load_with_tokenizer

ROOT = -1


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """Some texts as a tree of tokens, so that what they begin with is read once: N nodes, each after its parent.

    A caption and its negatives begin alike, as do captions of one kind: of COCO's captions with their negatives, the
    passes of 32 texts hold 55 % of the tokens that they had text by text. Nothing is approximated: a token attends to
    its own text's beginning alone, which is its path to the root.

    tokens, depths: (N,), of each node; the depth is its position in its text. parents: (N,), `ROOT` for the first
    tokens. ends: (texts,), the node of each text's last token.
    """

    tokens: NDArray[np.int64]
    depths: NDArray[np.int64]
    parents: NDArray[np.int64]
    ends: NDArray[np.int64]

    def paths(self) -> NDArray[np.bool_]:
        """(N, N): whether the node of a column lies on the path from the root to that of a row, itself included."""
        on = np.eye(len(self.tokens), dtype=np.bool_)
        for node, parent in enumerate(self.parents.tolist()):
            if parent != ROOT:
                on[node] |= on[parent]
        return on


def trees(texts: Sequence[Sequence[int]], micro_batch: int, most: int) -> Iterator[tuple[list[int], PrefixTree]]:
    """Trees of texts that begin alike, with the places of their texts, in an order that the texts alone decide.

    Args:
        texts: tokens of each, at least one.
        micro_batch: texts in a tree.
        most: nodes in a tree, but for one text that is longer.
    """
    order = sorted(range(len(texts)), key=lambda place: list(texts[place]))
    places: list[int] = []
    nodes, before = 0, list[int]()
    for place in order:
        shared = _shared(before, texts[place])
        if places and (len(places) == micro_batch or nodes + len(texts[place]) - shared > most):
            yield places, _tree([texts[one] for one in places])
            places, nodes, shared = [], 0, 0
        places.append(place)
        nodes += len(texts[place]) - shared
        before = list(texts[place])
    if places:
        yield places, _tree([texts[one] for one in places])


def _tree(texts: Sequence[Sequence[int]]) -> PrefixTree:
    """The tree of texts that are sorted: what a text shares with any, it shares with the one before."""
    tokens, depths, parents, ends = list[int](), list[int](), list[int](), list[int]()
    path, before = list[int](), list[int]()  # nodes and tokens of the text before
    for text in texts:
        shared = _shared(before, text)
        del path[shared:]
        for depth in range(shared, len(text)):
            parents.append(path[-1] if path else ROOT)
            path.append(len(tokens))
            tokens.append(text[depth])
            depths.append(depth)
        ends.append(path[-1])
        before = list(text)
    return PrefixTree(*(np.array(one, dtype=np.int64) for one in (tokens, depths, parents, ends)))


def _shared(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two texts begin with alike."""
    return next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


MOST_NODES = 1024  # of a tree: their logits over 49,152 words take 200 MB
#: How far apart a score may be by way of the tree and text by text, for the tree to be used: rounding is below it, and
#: a model that does not take the tree's mask is far above. In nats.
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1}


class LanguageModel(NetworkScorer):
    """Mean log-probability of a token, in nats; higher is more fluent.

    model: as `models.language_models.settings.Transformers.model`. max_tokens: what is read of a longer text.
    """

    kind: Literal["language-model"]
    max_tokens: int = Field(default=256, ge=1, le=8192)

    score = "lm"
    title = "language-model score"
    unit = "nats a token"
    reach = 2.0  # a lot, of a mean log-probability
    extra = "language-models"

    def libraries(self) -> tuple[str, ...]:
        return find_language_model(self.model).libraries

    def weights(self) -> str:
        return find_language_model(self.model).digest()

    def open(self, device: str) -> LanguageModelScorer:
        return LanguageModelScorer(self, device)


class LanguageModelScorer:
    """A causal language model, which reads what several texts begin with once (`PrefixTree`)."""

    def __init__(self, settings: LanguageModel, device: str) -> None:
        found = find_language_model(settings.model)
        self._tokenizer, model = load_with_tokenizer("AutoModelForCausalLM", found, settings.precision)
        self._model, self._device = model.to(device), device
        begin = self._tokenizer.bos_token_id
        self._begin = self._tokenizer.eos_token_id if begin is None else begin  # GPT-2 has one token for both
        if self._begin is None:
            raise WrongUse(
                f"{found.folder / found.gguf}: its tokenizer has no token for the beginning of a text; name another "
                "model"
            )
        positions = getattr(model.config, "max_position_embeddings", settings.max_tokens)
        self._most = min(settings.max_tokens, int(positions) - 1)
        takes = inspect.signature(model.forward).parameters
        self._takes_trees = {"position_ids", "logits_to_keep"} <= takes.keys() and self._agrees(settings.precision)

    def __call__(self, texts: Sequence[str], micro_batch: int) -> Scored:
        """As `Scorer.__call__`: of a text of n tokens after the token b of a beginning,

        score = 1/n · Σ log p(token i | b, tokens before i)

        The end of a text is not scored: whether a caption ends with a full stop would decide.
        """
        tokens = tokenize(self._tokenizer, texts, self._most, special=False)
        values = np.full(len(texts), np.nan)
        places = [place for place, ids in enumerate(tokens.ids) if ids]
        sequences = [[self._begin, *tokens.ids[place]] for place in places]
        for chosen, tree in trees(sequences, micro_batch if self._takes_trees else 1, MOST_NODES):
            values[[places[one] for one in chosen]] = self._means(tree)
        return Scored(values, tokens.truncated)

    def _means(self, tree: PrefixTree) -> NDArray[np.float64]:
        """Mean log-probability of each text's tokens after the first."""
        import torch

        inner, row = np.unique(tree.parents[tree.parents != ROOT], return_inverse=True)
        read: dict[str, Any] = {"input_ids": torch.from_numpy(tree.tokens)[None].to(self._device)}
        if self._takes_trees:
            # Logits only where a token follows; 0 where a node may look, the lowest number where not.
            lowest = torch.finfo(self._model.dtype).min
            hidden = torch.from_numpy(~tree.paths()).to(self._device)
            read["attention_mask"] = torch.zeros(
                hidden.shape, dtype=self._model.dtype, device=self._device
            ).masked_fill(hidden, lowest)[None, None]
            read["position_ids"] = torch.from_numpy(tree.depths)[None].to(self._device)
            read["logits_to_keep"] = torch.from_numpy(inner).to(self._device)
        logits = self._model(**read, use_cache=False).logits[0].float()  # (inner or N, vocabulary)
        after = row if self._takes_trees else inner[row]
        follows = np.flatnonzero(tree.parents != ROOT)
        follow, said = torch.from_numpy(after).to(self._device), torch.from_numpy(tree.tokens[follows]).to(self._device)
        chances = logits[follow, said] - logits.logsumexp(dim=1)[follow]
        totals = np.zeros(len(tree.tokens))
        totals[follows] = chances.double().cpu().numpy()
        for node in follows.tolist():  # a parent comes before its children
            totals[node] += totals[tree.parents[node]]
        means: NDArray[np.float64] = totals[tree.ends] / tree.depths[tree.ends]
        return means

    def _agrees(self, precision: str) -> bool:
        """Whether the model scores texts by way of a tree as one by one: not all take such a mask."""
        import torch

        from twinset.models.device import ran_out

        words = int(self._model.config.get_text_config().vocab_size)
        texts = [
            [self._begin, *(number % words for number in one)] for one in ((5, 6, 7), (5, 8, 9, 7), (8, 6), (8, 6, 5))
        ]
        with torch.inference_mode():
            alone = []
            for text in texts:
                logits = self._model(input_ids=torch.tensor([text], device=self._device), use_cache=False).logits[0]
                chances = logits[:-1].float().log_softmax(dim=1)[range(len(text) - 1), text[1:]]
                alone.append(float(chances.mean()))
            self._takes_trees = True
            try:
                ((chosen, tree),) = trees(texts, len(texts), MOST_NODES)
                found = self._means(tree)
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                if ran_out(error):  # else the last bits of all scores would depend on what else fills the memory
                    raise
                return False
        return bool(np.allclose(found, [alone[one] for one in chosen], rtol=0, atol=TOLERANCE[precision]))
