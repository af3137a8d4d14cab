"""Time that each regulariser adds to a training step of ViT-B/32.

    python tests/benchmarks/bench_eqsim.py [--model NAME] [--batch N] [--steps N]

A step is forward, InfoNCE, backward and AdamW of open_clip's model with random weights on random images and texts. A
regulariser's time is that of its forward and backward pass on features (n, d), similarities included; the encoders run
once for objective and regulariser. The table has it at the step's own batch and at n = 64, 256, 400 and 1,024, as a
share of a step of n examples, which is taken to cost n / batch of the step that was timed.

The clock is CPU time of one thread, which holds on a busy machine; medians. The limit is 1 % of a step; beyond it the
exit code is 1.
"""

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import open_clip  # type: ignore[import-untyped]  # noqa: E402
import torch  # noqa: E402
from measured import row  # noqa: E402
from torch.nn import functional  # noqa: E402

from twinset.training.losses.features import Features  # noqa: E402
from twinset.training.losses.names import REGULARISERS  # noqa: E402
from twinset.training.losses.objectives import InfoNCE, open_regulariser  # noqa: E402

SIZES, LIMIT = (64, 256, 400, 1024), 0.01


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Median CPU time of some work, after one run that does not count."""
    work()
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def step_of(name: str, batch: int) -> tuple[Callable[[], None], int]:
    """A training step of a model, and the width of its features."""
    model = open_clip.create_model(name, pretrained=None)
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.1)
    size = model.visual.image_size
    images = torch.randn(batch, 3, *(size if isinstance(size, tuple) else (size, size)))
    texts = torch.randint(1, 40000, (batch, 77))
    objective = InfoNCE()

    def step() -> None:
        features = [functional.normalize(one, dim=1) for one in (model.encode_image(images), model.encode_text(texts))]
        loss, _ = objective(Features(*features), model.logit_scale.exp())
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step, int(model.encode_text(texts[:1]).shape[1])


def loss_of(name: str, n: int, width: int) -> Callable[[], None]:
    """Forward and backward pass of a regulariser on features like those of an untrained model's small batch."""
    generator = torch.Generator().manual_seed(0)
    shared = torch.randn(n, width, generator=generator)
    parts = [
        functional.normalize(shared + torch.randn(n, width, generator=generator), dim=1).requires_grad_()
        for _ in range(2)
    ]
    scale = torch.tensor(100.0, requires_grad=True)
    loss = InfoNCE() if name == "infonce" else open_regulariser(name)  # type: ignore[arg-type]

    def work() -> None:
        value, _ = loss(Features(*parts), scale, generator)
        value.backward()  # type: ignore[no-untyped-call]

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="ViT-B-32", help="open_clip's name of the model")
    parser.add_argument("--batch", type=int, default=32, help="examples of the step that is timed")
    parser.add_argument("--steps", type=int, default=3, help="steps that are timed")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    processor = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        names = [line.partition(":")[2].strip() for line in cpus.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    print(f"device: CPU, {processor}, one thread; torch {torch.__version__}, float32")
    step, width = step_of(arguments.model, arguments.batch)
    one_step = seconds(step, arguments.steps)
    print(f"{arguments.model}, batch {arguments.batch}: {one_step:.2f} s a step\n")
    sizes = (arguments.batch, *SIZES)
    print(f"{'':22}" + "".join(f"{f'n = {n}':>20}" for n in sizes))
    worst = 0.0
    for name in ("infonce", *REGULARISERS.kinds()):
        line = f"{name:22}"
        for n in sizes:
            taken = seconds(loss_of(name, n, width), 30 if n < 400 else 9)
            share = taken / (one_step * n / arguments.batch)
            worst = max(worst, share if name in REGULARISERS.kinds() else 0.0)
            line += f"{1000 * taken:9.2f} ms {100 * share:6.3f} %"
        print(line, flush=True)
    print(f"\nlargest share of a regulariser: {100 * worst:.3f} %; limit {100 * LIMIT:.0f} %")
    row(
        "a regulariser's forward and backward pass, the dearest, one thread, CPU time",
        f"a training step of {arguments.model}",
        [100 * worst],
        f"limit {100 * LIMIT:.0f} %",
        unit="% of it",
    )
    raise SystemExit(worst > LIMIT)


if __name__ == "__main__":
    main()
