"""Trains the autoencoder of the small model: 64 x 64 pictures to 16 x 16 x 8 latents and back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from diffusers import AutoencoderTiny
from numpy.typing import NDArray
from torch.nn import functional

from twinset_demo.small_diffusion.painter import paint
from twinset_demo.small_diffusion.scenes import is_held_out, sample_scene

#: Standard deviation of the noise that is added to latents before decoding, in their own units: the decoder learns to
#: forgive the errors of a diffusion model.
LATENT_NOISE = 0.08
LATENTS = (8, 16, 16)  # channels, height, width

#: Of pictures and noise for their latents: the loss, and the pictures as decoded.
Loss = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def new_autoencoder(fine: bool = False) -> Any:
    """An untrained autoencoder, four times smaller on each side. fine: its decoder works at full resolution too."""
    return AutoencoderTiny(
        encoder_block_out_channels=(32, 32, 32),
        decoder_block_out_channels=(32, 32, 32),
        num_encoder_blocks=(0, 1, 2),
        num_decoder_blocks=(2, 2, 1 if fine else 0),
        latent_channels=LATENTS[0],
        scaling_factor=1.0,
    )


def pictures(rng: np.random.Generator, number: int) -> tuple[list[str], NDArray[np.uint8]]:
    """Captions and pictures (n, 64, 64, 3) that training may see."""
    captions: list[str] = []
    drawn: list[NDArray[np.uint8]] = []
    while len(drawn) < number:
        scene = sample_scene(rng)
        if not is_held_out(scene.caption()):
            captions.append(scene.caption())
            drawn.append(paint(scene, rng))
    return captions, np.stack(drawn)


def as_tensor(pixels: NDArray[np.uint8]) -> torch.Tensor:
    """Pictures (n, h, w, 3) uint8 as (n, 3, h, w) float32 from -1 to 1."""
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div(127.5).sub(1).contiguous()


def train_autoencoder(steps: int, seed: int, device: str, batch: int = 24) -> Any:
    """Train encoder and decoder on the absolute error of pixels and of the differences between neighbours.

    Latents are held near zero mean and unit variance in each channel, as diffusion assumes.
    """
    torch.manual_seed(seed)
    model = new_autoencoder().to(device)

    def loss(images: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        latents = model.encode(images).latents
        decoded = model.decode(latents + noise).sample
        pixels = functional.l1_loss(decoded, images)
        edges = functional.l1_loss(decoded.diff(dim=-1), images.diff(dim=-1))
        edges = edges + functional.l1_loss(decoded.diff(dim=-2), images.diff(dim=-2))
        spread = (latents.var(dim=(0, 2, 3)) - 1).square().mean() + latents.mean(dim=(0, 2, 3)).square().mean()
        return pixels + edges + 0.02 * spread, decoded

    return _fit("autoencoder", model, model, loss, steps, [seed, 1], batch, 2e-3)


def refine_decoder(before: Any, steps: int, seed: int, device: str, batch: int = 16) -> Any:
    """Train a finer decoder for the same encoder, so the same latents: corners of small objects come out sharp.

    Args:
        before: what `train_autoencoder` returns, or this, to go on.
    """
    torch.manual_seed(seed)
    model = new_autoencoder(fine=True).to(device)
    model.encoder.load_state_dict(before.encoder.state_dict())
    *layers, last = before.decoder.layers
    for index, layer in enumerate(layers):
        model.decoder.layers[index].load_state_dict(layer.state_dict())
    model.decoder.layers[-1].load_state_dict(last.state_dict())  # a coarse decoder has one layer less before it

    def loss(images: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            latents = model.encode(images).latents
        decoded = model.decode(latents + noise).sample
        errors = decoded - images
        # Errors count up to ten times beside the edges, however faint, of the picture that is to be drawn.
        steepest = functional.max_pool2d(images, 3, 1, 1) + functional.max_pool2d(-images, 3, 1, 1)
        weights = 1 + 9 * (2 * steepest.amax(1, keepdim=True)).clamp(max=1)  # (n, 1, h, w)
        return (weights * (errors.abs() + 2 * errors.square())).mean(), decoded

    return _fit("decoder", model, model.decoder, loss, steps, [seed, 3], batch, 1e-3)


def _fit(
    part: str, model: Any, trained: Any, loss_of: Loss, steps: int, seeds: list[int], batch: int, rate: float
) -> Any:
    """The model with one part trained. seeds: of the pictures; the first is also that of the noise."""
    rng, device = np.random.default_rng(seeds), model.device
    optimizer = torch.optim.AdamW(trained.parameters(), lr=rate, betas=(0.9, 0.99), weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.05)
    for step in range(steps):
        images = as_tensor(pictures(rng, batch)[1]).to(device)
        noise = torch.randn((batch, *LATENTS), generator=torch.Generator().manual_seed(seeds[0] + step)).to(device)
        loss, decoded = loss_of(images, LATENT_NOISE * noise)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == steps - 1:
            # Peak signal-to-noise ratio of pixels from -1 to 1: 10 log10(2² / mean squared error)
            ratio = 10 * np.log10(4 / functional.mse_loss(decoded.clamp(-1, 1), images).item())
            print(f"{part} {step + 1}/{steps} loss {loss.item():.4f} PSNR {ratio:.2f} dB", flush=True)
    return model.eval()
