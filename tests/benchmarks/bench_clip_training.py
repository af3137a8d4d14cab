"""A training step as twinset takes it against open_clip's own loop, on the same batches in memory.

    python tests/benchmarks/bench_clip_training.py [--model NAME] [--batch N] [--steps N] [--repeats N] [--gpu]

Both train open_clip's model with random weights by InfoNCE and AdamW: open_clip by `open_clip_train.train.
train_one_epoch`, twinset by `training.runs.trainer.take_step`, which also measures the gradient and refuses a loss that
is not finite. They alternate, so that other work on the machine slows both alike. With ``--gpu`` both run in bfloat16
by autocast and the clock is the wall's; on the CPU in float32, and it is CPU time of one thread.
"""

import argparse
import copy
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measured import row

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import open_clip  # type: ignore[import-untyped]  # noqa: E402
import torch  # noqa: E402
from open_clip_train.train import train_one_epoch  # type: ignore[import-untyped]  # noqa: E402

from twinset.models.device import GPU  # noqa: E402
from twinset.training.clip.settings import ClipSettings  # noqa: E402
from twinset.training.clip.train import ClipTask  # noqa: E402
from twinset.training.examples.batches import Batch  # noqa: E402
from twinset.training.losses.objectives import open_loss  # noqa: E402
from twinset.training.runs.processes import joined  # noqa: E402
from twinset.training.runs.steps import new_optimiser  # noqa: E402
from twinset.training.runs.trainer import take_step  # noqa: E402

Data = list[tuple[torch.Tensor, torch.Tensor]]


class InMemory:
    """Batches as open_clip's loop reads them."""

    def __init__(self, batches: Data) -> None:
        self.dataloader = self
        self.batches, self.num_batches, self.num_samples = batches, len(batches), sum(len(one) for one, _ in batches)

    def set_epoch(self, epoch: int) -> None: ...

    def __iter__(self) -> Any:
        return iter(self.batches)


def open_clips(network: Any, batches: Data, device: str, gpu: bool) -> Callable[[], None]:
    """An epoch of open_clip's loop."""
    network = network.to(device)
    network.output_dict = True
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-6, betas=(0.9, 0.98), eps=1e-6)
    asked = Namespace(
        device=device, precision="amp_bf16" if gpu else "fp32", distill=False, accum_freq=1, skip_scheduler=True,
        horovod=False, grad_clip_norm=None, rank=0, local_rank=0, log_local=False, log_every_n_steps=10**9,
        world_size=1, batch_size=len(batches[0][0]), wandb=False, distributed=False,
    )  # fmt: skip
    loss = open_clip.ClipLoss()
    data = {"train": InMemory(batches)}
    return lambda: train_one_epoch(network, data, loss, 0, optimiser, None, None, None, asked)


class InMemoryTask(ClipTask):
    """The task without data and models of its own."""

    def __init__(self, network: Any, settings: ClipSettings, process: Any, steps: int) -> None:
        self.settings, self._process, self.steps = settings, process, steps
        self._chunk = settings.batch
        self.network = network.to(process.device).train()
        self.optimiser = new_optimiser(self.network, settings)
        self.loss = open_loss("infonce", None, 0.0)


def ours(network: Any, batches: Data, settings: ClipSettings, process: Any) -> Callable[[], None]:
    """As many steps of twinset's."""
    task, keys = InMemoryTask(network, settings, process, len(batches)), tuple(map(str, range(settings.batch)))

    def epoch() -> None:
        for step, (images, texts) in enumerate(batches):
            take_step(task, process, Batch(step, 0, keys, keys, {"image": images}, {"text": texts}))

    return epoch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="ViT-B-32", help="open_clip's name of the model")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=2, help="of a round")
    parser.add_argument("--repeats", type=int, default=3, help="rounds, after one that does not count")
    parser.add_argument("--gpu", action="store_true", help="on the first CUDA device")
    given = parser.parse_args()
    device, precision = (GPU, "bfloat16") if given.gpu else ("cpu", "float32")
    settings = ClipSettings(
        data=("none",), model=given.model, weights=None, batch=given.batch, warmup=0, precision=precision,
        device="gpu" if given.gpu else "cpu", threads=1,
    )  # fmt: skip
    torch.manual_seed(0)
    network = open_clip.create_model(given.model)
    size = network.visual.image_size[0]
    batches = [
        (torch.randn(given.batch, 3, size, size), torch.randint(1, 49405, (given.batch, 77)))
        for _ in range(given.steps)
    ]
    clock = time.perf_counter if given.gpu else time.process_time
    taken: dict[str, list[float]] = {"open_clip": [], "twinset": []}
    with joined(settings) as process:
        ways = {
            "open_clip": open_clips(copy.deepcopy(network), batches, device, given.gpu),
            "twinset": ours(network, batches, settings, process),
        }
        for _ in range(given.repeats + 1):
            for name, epoch in ways.items():
                start = clock()
                epoch()
                if given.gpu:
                    torch.cuda.synchronize()
                taken[name].append((clock() - start) / given.steps)
    taken = {name: some[1:] for name, some in taken.items()}
    where = torch.cuda.get_device_name() if given.gpu else "one thread, CPU time"
    row(
        f"a training step of {given.model}, batch {given.batch}, {precision}, {where}",
        "open_clip's loop",
        [slow / fast for slow, fast in zip(taken["open_clip"], taken["twinset"], strict=True)],
    )


if __name__ == "__main__":
    main()
