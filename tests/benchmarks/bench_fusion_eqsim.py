"""Time that EqSim adds to a training step of a fusion encoder.

    python tests/benchmarks/bench_fusion_eqsim.py [--width N] [--layers N] [--size N] [--steps N] [--gpu]

BLIP's image-text matching with random weights, by default of a quarter of BLIP base's width and depth (towers and head
keep their ratio) on images of 288 pixels, with 15 negatives a pair as EqBen has them (C). A step is a part's: forward,
objective and backward of some pairs with `match`, without and with `eqsim`, which scores a third change of a negative.
`rank` is METER's objective, which without EqSim reads no negative images: EqBen's A.4 has 0.384 s and 0.750 s for it.

The clock is CPU time of one thread; medians. The limit is 30 % with `match`; beyond it the exit code is 1.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

from measured import row

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import transformers

from twinset.training.losses.fusion import CHANGES, PairScores, match_hard_negatives, rank_texts, score_pairs
from twinset.training.losses.objectives import open_fusion_loss

LIMIT, NEGATIVES, TOKENS = 0.30, 15, 32


def blip(width: int, layers: int, size: int) -> torch.nn.Module:
    """BLIP of some width and depth, in training mode."""
    each = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": layers}
    each |= {"num_attention_heads": max(1, width // 64)}
    config = transformers.BlipConfig(
        text_config={**each, "encoder_hidden_size": width}, vision_config={**each, "image_size": size, "patch_size": 16}
    )
    return transformers.BlipForImageTextRetrieval(config).train()


def step_of(
    model: torch.nn.Module, size: int, pairs: int, objective: str, regulariser: str | None
) -> Callable[[], None]:
    """Forward and backward pass of a part of some pairs, whose negatives are all different."""
    device = next(model.parameters()).device
    examples = pairs * (1 + NEGATIVES)
    pixels = torch.randn(examples, 3, size, size, device=device)
    tokens = torch.randint(5, 1000, (examples, TOKENS), device=device)
    mask = torch.ones_like(tokens)
    rows, negatives = torch.arange(pairs), torch.arange(pairs, examples).view(pairs, NEGATIVES)
    close = (torch.arange(NEGATIVES, device=device) < 8).expand(pairs, -1)
    extra = None if regulariser is None else open_fusion_loss(regulariser)
    changes = CHANGES if extra is not None else CHANGES[: 2 if objective == "match" else 1]
    seen = pairs if changes == CHANGES[:1] else examples  # images that are read at all

    def step() -> None:
        patches = model.vision_model(pixel_values=pixels[:seen]).last_hidden_state

        def score(images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
            images, texts = images.to(device), texts.to(device)
            shown = patches[images]
            read = model.text_encoder(
                input_ids=tokens[texts], attention_mask=mask[texts], encoder_hidden_states=shown,
                encoder_attention_mask=torch.ones(shown.shape[:2], dtype=torch.long, device=device),
            )  # fmt: skip
            odds = model.itm_head(read.last_hidden_state[:, 0])
            return odds[:, 1] - odds[:, 0]

        scores: PairScores = score_pairs(score, rows, negatives, changes)
        loss = (match_hard_negatives if objective == "match" else rank_texts)(scores)[0]
        if extra is not None:
            loss = loss + 0.5 * extra(scores, close)[0]
        model.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]

    return step


def seconds(work: Callable[[], None], repeats: int, on_gpu: bool) -> float:
    """Median time of some work, after one run that does not count."""
    taken = []
    for _ in range(repeats + 1):
        start = time.monotonic() if on_gpu else time.process_time()
        work()
        if on_gpu:
            torch.cuda.synchronize()
        taken.append((time.monotonic() if on_gpu else time.process_time()) - start)
    return statistics.median(taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=192, help="of both towers; BLIP base has 768")
    parser.add_argument("--layers", type=int, default=3, help="of both towers; BLIP base has 12")
    parser.add_argument("--size", type=int, default=288, help="pixels of an image's side")
    parser.add_argument("--pairs", type=int, default=2, help="of a part; FIBER's are of 8")
    parser.add_argument("--steps", type=int, default=3, help="steps that are timed")
    parser.add_argument("--gpu", action="store_true", help="on the first CUDA device, by wall time")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = blip(arguments.width, arguments.layers, arguments.size).to("cuda" if arguments.gpu else "cpu")
    device = torch.cuda.get_device_name() if arguments.gpu else "CPU, one thread"
    print(
        f"{device}; torch {torch.__version__}; width {arguments.width}, {arguments.layers} layers, {arguments.size} px"
    )
    shares = {}
    for objective in ("match", "rank"):
        alone, both = (
            seconds(step_of(model, arguments.size, arguments.pairs, objective, name), arguments.steps, arguments.gpu)
            for name in (None, "eqsim")
        )
        shares[objective] = both / alone - 1
        print(
            f"{objective:6} {alone:7.3f} s a part; with eqsim {both:7.3f} s: {100 * shares[objective]:+.1f} %",
            flush=True,
        )
    row(
        f"EqSim in a step of a BLIP of width {arguments.width}, `match`, CPU time",
        "the step without it",
        [1 + shares["match"]],
        f"`rank`, with more images: {1 + shares['rank']:.1f} ×; limit {100 * LIMIT:.0f} % with `match`",
    )
    raise SystemExit(shares["match"] > LIMIT)


if __name__ == "__main__":
    main()
