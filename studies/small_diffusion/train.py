"""Train the small text-to-image model: ``python -m studies.small_diffusion.train --out FOLDER``.

A latent diffusion model (Rombach et al. 2022) in miniature: an autoencoder first, then text encoder and UNet together
on latents computed beforehand. Velocities are predicted (Salimans and Ho 2022) and all timesteps weigh alike: where
objects stand is decided in the noisiest ones, which weights by signal-to-noise ratio almost leave out. The learning
rate is held and falls linearly at the end, so that training can go on from any point before the fall.
"""

import argparse
import copy
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from studies.small_diffusion.autoencoder import as_tensor, new_autoencoder, pictures, refine_decoder, train_autoencoder
from twinset_demo.small_diffusion.layout import LENGTH, new_scheduler, new_text_encoder, new_tokenizer, new_unet, save

BATCH = 32
RATE = 8e-4
WARM_UP = 200  # steps
WITHOUT_CAPTION = 0.1  # share of samples, for guidance
AVERAGE = 0.999  # of the weights that are kept, a step


@dataclass(frozen=True, slots=True)
class Examples:
    """latents: (n, 8, 16, 16) float32. tokens: (n, 24) int64, and those of the empty caption (24,)."""

    latents: torch.Tensor
    tokens: torch.Tensor
    nothing: torch.Tensor


def main() -> None:
    """Train, or go on with training, and save the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="OUT/model is the model; the rest is there to go on")
    parser.add_argument("--autoencoder-steps", type=int, default=2200)
    parser.add_argument("--decoder-steps", type=int, default=2500, help="of its finer decoder, twice")
    parser.add_argument("--pictures", type=int, default=40_000)
    parser.add_argument("--steps", type=int, default=8500, help="of text encoder and UNet, the fall included")
    parser.add_argument("--fall", type=int, default=3000, help="last steps, in which the learning rate falls to zero")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    vae = _autoencoder(given)
    tokenizer = new_tokenizer(given.out / "tokenizer")
    examples = _examples(vae, tokenizer, given.pictures, given.seed, given.device)
    training = Training(tokenizer, given.seed, given.device, given.out)
    while training.step < given.steps:
        training.advance(examples, rate_at(training.step, given.steps, given.fall))
        if training.step % 250 == 0 or training.step == given.steps:
            training.keep(vae)


def rate_at(step: int, steps: int, fall: int, rate: float = RATE) -> float:
    """The learning rate of a step. rate: the highest; fall: last steps, in which it falls to zero."""
    return rate * min(1.0, (step + 1) / WARM_UP, (steps - step) / max(fall, 1))


class Training:
    """Text encoder, UNet and their running averages; what they need to go on lies in ``training.pt``."""

    def __init__(
        self, tokenizer: Any, seed: int, device: str, folder: Path, start: tuple[Any, Any] | None = None
    ) -> None:
        """start: UNet and text encoder to begin with; without them, new ones."""
        torch.manual_seed(seed)
        self.tokenizer = tokenizer
        self.seed, self.device, self.folder = seed, device, folder
        # Of several processes (`torch.distributed`), each takes its rows of every batch.
        together = torch.distributed.is_initialized()
        self.rank, self.ranks = (
            (torch.distributed.get_rank(), torch.distributed.get_world_size()) if together else (0, 1)
        )
        unet, text = start or (new_unet(), new_text_encoder(tokenizer))
        self.unet: Any = unet.to(device)
        self.text: Any = text.to(device)
        self.models = torch.nn.ModuleList([self.unet, self.text])
        self.average = copy.deepcopy(self.models).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.models.parameters(), lr=RATE, betas=(0.9, 0.99), weight_decay=0.01)
        self.parts: dict[str, Any] = {"models": self.models, "average": self.average, "optimizer": self.optimizer}
        self.alphas = new_scheduler().alphas_cumprod.to(device)
        self.step = 0
        self.log: list[dict[str, float]] = []
        self.began = time.monotonic()
        if (folder / "training.pt").exists():
            state = torch.load(folder / "training.pt", map_location=device, weights_only=True)
            for name, part in self.parts.items():
                part.load_state_dict(state[name])
            self.step, self.log = state["step"], state["log"]

    def advance(self, examples: Examples, rate: float) -> None:
        """One step; all random numbers come from the seed and the number of the step.

        With noise e, cumulative signal a of a timestep and latents x, the network sees sqrt(a) x + sqrt(1 - a) e and
        predicts the velocity v = sqrt(a) e - sqrt(1 - a) x.
        """
        rng = torch.Generator().manual_seed(self.seed * 1_000_003 + self.step)
        chosen = torch.randint(len(examples.latents), (BATCH,), generator=rng)
        latents = examples.latents[chosen].to(self.device)
        tokens = examples.tokens[chosen]
        tokens = torch.where(torch.rand(BATCH, 1, generator=rng) < WITHOUT_CAPTION, examples.nothing, tokens)
        times = self.timesteps(rng).to(self.device)
        noise = torch.randn(latents.shape, generator=rng).to(self.device)
        mine = slice(self.rank, None, self.ranks)
        latents, tokens, times, noise = latents[mine], tokens[mine], times[mine], noise[mine]

        signal = self.alphas[times].sqrt().view(-1, 1, 1, 1)
        disturbance = (1 - self.alphas[times]).sqrt().view(-1, 1, 1, 1)
        states = self.text(tokens.to(self.device)).last_hidden_state
        found = self.unet(signal * latents + disturbance * noise, times, states).sample
        loss = (found - (signal * noise - disturbance * latents)).square().mean()

        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss.backward()
        self._average_gradients()
        torch.nn.utils.clip_grad_norm_(self.models.parameters(), 1.0)
        self.optimizer.step()
        with torch.no_grad():
            # average <- share * average + (1 - share) * weight; early weights are forgotten soon.
            share = min(AVERAGE, (self.step + 1) / (self.step + 10))
            for average, weight in zip(self.average.parameters(), self.models.parameters(), strict=True):
                average.lerp_(weight, 1 - share)
        self.step += 1
        if self.step % 50 == 0 and self.rank == 0:
            seconds = time.monotonic() - self.began
            self.log.append({"step": self.step, "loss": loss.item(), "rate": rate})
            print(f"step {self.step} loss {loss.item():.4f} rate {rate:.5f} after {seconds:.0f} s", flush=True)

    def timesteps(self, rng: torch.Generator) -> torch.Tensor:
        """Timesteps of a batch, (BATCH,) int64: all are as likely."""
        return torch.randint(len(self.alphas), (BATCH,), generator=rng)

    def _average_gradients(self) -> None:
        if self.ranks == 1:
            return
        gradients = [part.grad for part in self.models.parameters() if part.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        torch.distributed.all_reduce(flat)
        for gradient, summed in zip(gradients, torch.split(flat, [one.numel() for one in gradients]), strict=True):
            gradient.copy_(summed.view_as(gradient) / self.ranks)

    def keep(self, vae: Any) -> None:
        """Save the averaged model for use, and all of it to go on; of several processes the first one does."""
        if self.rank:
            return
        unet, text = copy.deepcopy(self.average)
        save(self.folder / "model", unet, text, self.tokenizer, copy.deepcopy(vae))
        state = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({**state, "step": self.step, "log": self.log}, self.folder / "training.new")
        (self.folder / "training.new").replace(self.folder / "training.pt")
        (self.folder / "log.json").write_text(json.dumps(self.log))


def _autoencoder(given: argparse.Namespace) -> Any:
    weights = given.out / "autoencoder.safetensors"
    if weights.exists():
        vae = new_autoencoder(fine=True)
        vae.load_state_dict(load_file(weights))
        return vae.to(given.device).eval()
    vae = train_autoencoder(given.autoencoder_steps, given.seed, given.device)
    for number in range(2):
        vae = refine_decoder(vae, given.decoder_steps, given.seed + number, given.device)
    save_file(vae.state_dict(), weights)
    return vae


@torch.no_grad()
def _examples(vae: Any, tokenizer: Any, number: int, seed: int, device: str) -> Examples:
    rng = np.random.default_rng([seed, 2])
    latents, captions = [], []
    for _ in range(0, number, 500):
        said, drawn = pictures(rng, 500)
        # With and without a full stop, as captions of a benchmark may have one or not.
        captions += [caption + ("." if index % 2 else "") for index, caption in enumerate(said)]
        latents.append(vae.encode(as_tensor(drawn).to(device)).latents.cpu())
    settings = {"padding": "max_length", "max_length": LENGTH, "truncation": True, "return_tensors": "pt"}
    tokens = tokenizer(captions, **settings).input_ids
    return Examples(torch.cat(latents), tokens, tokenizer([""], **settings).input_ids[0])


if __name__ == "__main__":
    main()
