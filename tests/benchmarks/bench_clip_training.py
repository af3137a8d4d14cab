"""A training step as twinset takes it against open_clip's own loop, on the same batches in memory.

    python -m tests.benchmarks.bench_clip_training [--model NAME] [--batch N] [--steps N] [--rounds N] [--gpu]

Both train open_clip's model with random weights by InfoNCE and AdamW: open_clip by `open_clip_train.train.
train_one_epoch`, twinset by `training.runs.trainer.take_step`, which also measures the gradient and refuses a loss that
is not finite. With ``--gpu`` both run in bfloat16 by autocast and the clock is the wall's; on the CPU in float32, and
it is CPU time of one thread.
"""

import copy
import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import open_clip  # type: ignore[import-untyped]
import torch
from open_clip_train.train import train_one_epoch  # type: ignore[import-untyped]

from tests.benchmarks.measured import compare
from tests.options import options
from twinset.models.device import GPU
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.train import ClipTask
from twinset.training.examples.batches import Batch
from twinset.training.losses.objectives import open_loss
from twinset.training.runs.processes import joined
from twinset.training.runs.steps import new_optimiser
from twinset.training.runs.trainer import take_step

Data = list[tuple[torch.Tensor, torch.Tensor]]


class InMemory:
    """Batches as open_clip's loop reads them."""

    def __init__(self, batches: Data) -> None:
        self.dataloader = self
        self.batches, self.num_batches, self.num_samples = (
            batches,
            len(batches),
            sum(len(images) for images, _ in batches),
        )

    def set_epoch(self, epoch: int) -> None: ...

    def __iter__(self) -> Any:
        return iter(self.batches)


def open_clips(network: Any, batches: Data, device: str, gpu: bool) -> Callable[[], None]:
    network = network.to(device)
    network.output_dict = True
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-6, betas=(0.9, 0.98), eps=1e-6)
    options = Namespace(
        device=device, precision="amp_bf16" if gpu else "fp32", distill=False, accum_freq=1, skip_scheduler=True,
        horovod=False, grad_clip_norm=None, rank=0, local_rank=0, log_local=False, log_every_n_steps=10**9,
        world_size=1, batch_size=len(batches[0][0]), wandb=False, distributed=False,
    )  # fmt: skip
    data, loss = {"train": InMemory(batches)}, open_clip.ClipLoss()
    return lambda: train_one_epoch(network, data, loss, 0, optimiser, None, None, None, options)


class InMemoryTask(ClipTask):
    """The task without data and models of its own."""

    def __init__(self, network: Any, settings: ClipSettings, process: Any, steps: int) -> None:
        self.settings, self._process, self.steps = settings, process, steps
        self._chunk = settings.batch
        self.network = network.to(process.device).train()
        self.optimiser = new_optimiser(self.network, settings)
        self.loss = open_loss("infonce", None, 0.0)


def ours(network: Any, batches: Data, settings: ClipSettings, process: Any) -> Callable[[], None]:
    task, keys = InMemoryTask(network, settings, process, len(batches)), tuple(map(str, range(settings.batch)))

    def epoch() -> None:
        for step, (images, texts) in enumerate(batches):
            take_step(task, process, Batch(step, 0, keys, keys, {"image": images}, {"text": texts}))

    return epoch


def main() -> None:
    given = options(__doc__, model="ViT-B-32", batch=16, steps=2, rounds=3, gpu=False)
    torch.set_num_threads(1)
    device, precision = (GPU, "bfloat16") if given.gpu else ("cpu", "float32")
    settings = ClipSettings(
        data=("none",), model=given.model, weights=None, batch=given.batch, warmup=0, precision=precision,
        device="gpu" if given.gpu else "cpu", threads=1,
    )  # fmt: skip
    torch.manual_seed(0)
    network = open_clip.create_model(given.model)
    shape = (given.batch, 3, *network.visual.image_size)
    batches = [(torch.randn(shape), torch.randint(1, 49405, (given.batch, 77))) for _ in range(given.steps)]

    def clock() -> float:
        if not given.gpu:
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    where = torch.cuda.get_device_name() if given.gpu else "one thread, CPU time"
    with joined(settings) as process:
        compare(
            f"a training step of {given.model}, batch {given.batch}, {precision}, {where}",
            ours(copy.deepcopy(network), batches, settings, process),
            {"open_clip's loop": open_clips(network, batches, device, given.gpu)},
            rounds=given.rounds,
            clock=clock,
            more=lambda seconds: f"{given.batch * given.steps / seconds:.3g} images/s",
        )


if __name__ == "__main__":
    main()
