"""Time that each regulariser adds to a training step of ViT-B/32.

    python tests/benchmarks/bench_eqsim.py [--model NAME] [--batch N] [--steps N] [--sizes N ...] [--gpu]

A step is forward, InfoNCE, backward and AdamW of open_clip's model with random weights on random images and texts. A
regulariser's time is that of its forward and backward pass on features (n, d), similarities included; the encoders run
once for objective and regulariser. The table has it at the step's own batch and at n = 64, 256, 400 and 1,024, as a
share of a step of n examples, which is taken to cost n / batch of the step that was timed.

The clock is CPU time of one thread, which holds on a busy machine, or with ``--gpu`` the wall's, where encoders run in
bfloat16 by autocast; medians. The limit is 1 % of a step; beyond it the
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

from twinset.models.device import GPU  # noqa: E402
from twinset.training.clip.steps import autocast  # noqa: E402
from twinset.training.losses.features import Features  # noqa: E402
from twinset.training.losses.names import REGULARISERS  # noqa: E402
from twinset.training.losses.objectives import InfoNCE, open_regulariser  # noqa: E402

SIZES, LIMIT = (64, 256, 400, 1024), 0.01


def seconds(work: Callable[[], object], repeats: int, device: str) -> float:
    """Median time of some work, after one run that does not count."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    work()
    taken = []
    for _ in range(repeats):
        if device != "cpu":
            torch.cuda.synchronize()
        start = clock()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        taken.append(clock() - start)
    return statistics.median(taken)


def step_of(name: str, batch: int, device: str) -> tuple[Callable[[], None], int]:
    """A training step of a model, and the width of its features."""
    model = open_clip.create_model(name, pretrained=None, device=device)
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.1)
    size = model.visual.image_size
    images = torch.randn(batch, 3, *(size if isinstance(size, tuple) else (size, size)), device=device)
    texts = torch.randint(1, 40000, (batch, 77), device=device)
    objective = InfoNCE()

    def step() -> None:
        with autocast("float32" if device == "cpu" else "bfloat16", device):
            features = model.encode_image(images), model.encode_text(texts)
        image, text = (functional.normalize(one.float(), dim=1) for one in features)
        loss, _ = objective(Features(image, text), model.logit_scale.exp())
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step, int(model.encode_text(texts[:1]).shape[1])


def loss_of(name: str, n: int, width: int, device: str) -> Callable[[], None]:
    """Forward and backward pass of a regulariser on features like those of an untrained model's small batch."""
    generator = torch.Generator().manual_seed(0)
    shared = torch.randn(n, width, generator=generator)
    parts = [
        functional.normalize(shared + torch.randn(n, width, generator=generator), dim=1).to(device).requires_grad_()
        for _ in range(2)
    ]
    scale = torch.tensor(100.0, device=device, requires_grad=True)
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
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="n of the regulariser, besides the step's")
    parser.add_argument("--gpu", action="store_true", help="on the first CUDA device, by wall time")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    device = GPU if arguments.gpu else "cpu"
    processor = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        names = [line.partition(":")[2].strip() for line in cpus.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    where = torch.cuda.get_device_name() if arguments.gpu else "one thread, CPU time"
    print(f"device: {processor}, {where}; torch {torch.__version__}")
    step, width = step_of(arguments.model, arguments.batch, device)
    one_step = seconds(step, arguments.steps, device)
    print(f"{arguments.model}, batch {arguments.batch}: {one_step:.2f} s a step\n")
    sizes = (arguments.batch, *arguments.sizes)
    print(f"{'':22}" + "".join(f"{f'n = {n}':>20}" for n in sizes))
    worst = 0.0
    for name in ("infonce", *REGULARISERS.kinds()):
        line = f"{name:22}"
        for n in sizes:
            taken = seconds(loss_of(name, n, width, device), 30 if n < 400 else 9, device)
            share = taken / (one_step * n / arguments.batch)
            worst = max(worst, share if name in REGULARISERS.kinds() else 0.0)
            line += f"{1000 * taken:9.2f} ms {100 * share:6.3f} %"
        print(line, flush=True)
    print(f"\nlargest share of a regulariser: {100 * worst:.3f} %; limit {100 * LIMIT:.0f} %")
    row(
        f"a regulariser's forward and backward pass, the dearest, {where}",
        f"a training step of {arguments.model}" + (f", batch {arguments.batch}, bfloat16" if arguments.gpu else ""),
        [100 * worst],
        f"limit {100 * LIMIT:.0f} %",
        unit="% of it",
    )
    raise SystemExit(worst > LIMIT)


if __name__ == "__main__":
    main()
