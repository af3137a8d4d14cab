"""Trains the autoencoder of the small model: 64 x 64 pictures to 16 x 16 x 8 latents and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from diffusers import AutoencoderTiny
from numpy.typing import NDArray
from torch.nn import functional

from generators.builtin.small_diffusion.painter import paint
from generators.builtin.small_diffusion.scenes import is_held_out, sample_scene

#: Standard deviation of the noise that latents are given before decoding, in their own units: the decoder learns to
#: forgive what a diffusion model leaves.
LATENT_NOISE = 0.08


def new_autoencoder(fine: bool = False) -> Any:
    """An untrained autoencoder, four times smaller on each side. fine: its decoder works at full resolution too."""
    return AutoencoderTiny(
        encoder_block_out_channels=(32, 32, 32),
        decoder_block_out_channels=(32, 32, 32),
        num_encoder_blocks=(0, 1, 2),
        num_decoder_blocks=(2, 2, 1 if fine else 0),
        latent_channels=8,
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
    """Absolute error of pixels and of their differences to the next pixel, with latents held near unit variance."""
    torch.manual_seed(seed)
    rng = np.random.default_rng([seed, 1])
    model = new_autoencoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.99), weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps, pct_start=0.05)
    for step in range(steps):
        images = as_tensor(pictures(rng, batch)[1]).to(device)
        latents = model.encode(images).latents
        noise = torch.randn(latents.shape, generator=torch.Generator().manual_seed(seed + step)).to(device)
        decoded = model.decode(latents + LATENT_NOISE * noise).sample
        pixels = functional.l1_loss(decoded, images)
        edges = functional.l1_loss(decoded.diff(dim=-1), images.diff(dim=-1))
        edges = edges + functional.l1_loss(decoded.diff(dim=-2), images.diff(dim=-2))
        spread = (latents.var(dim=(0, 2, 3)) - 1).square().mean() + latents.mean(dim=(0, 2, 3)).square().mean()
        loss = pixels + edges + 0.02 * spread
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        _report("autoencoder", step, steps, loss, decoded, images)
    return model.eval()


def refine_decoder(before: Any, steps: int, seed: int, device: str, batch: int = 16) -> Any:
    """The same encoder, so the same latents, with a finer decoder: corners of small objects come out sharp.

    before: as `train_autoencoder` leaves it, or as this does, to go on.

    Errors count up to ten times at the edges of the picture that is to be drawn.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng([seed, 3])
    model = new_autoencoder(fine=True).to(device)
    model.encoder.load_state_dict(before.encoder.state_dict())
    model.encoder.requires_grad_(False)
    *layers, last = before.decoder.layers
    for index, layer in enumerate(layers):
        model.decoder.layers[index].load_state_dict(layer.state_dict())
    model.decoder.layers[-1].load_state_dict(last.state_dict())  # a coarse decoder has one layer less before it
    optimizer = torch.optim.AdamW(model.decoder.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps, pct_start=0.05)
    for step in range(steps):
        images = as_tensor(pictures(rng, batch)[1]).to(device)
        with torch.no_grad():
            latents = model.encode(images).latents
        noise = torch.randn(latents.shape, generator=torch.Generator().manual_seed(seed + step)).to(device)
        decoded = model.decode(latents + LATENT_NOISE * noise).sample
        errors = decoded - images
        loss = (_edge_weights(images) * (errors.abs() + 2 * errors.square())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        _report("decoder", step, steps, loss, decoded, images)
    model.encoder.requires_grad_(True)
    return model.eval()


def _edge_weights(images: torch.Tensor) -> torch.Tensor:
    """(n, 1, h, w): 1 where a picture is even, up to 10 beside its edges, however faint."""
    steepest = functional.max_pool2d(images, 3, 1, 1) + functional.max_pool2d(-images, 3, 1, 1)
    return 1 + 9 * (2 * steepest.amax(1, keepdim=True)).clamp(max=1)


def _report(part: str, step: int, steps: int, loss: torch.Tensor, decoded: torch.Tensor, images: torch.Tensor) -> None:
    if step % 100 == 0 or step == steps - 1:
        error = functional.mse_loss(decoded.clamp(-1, 1), images).item()
        ratio = -10 * np.log10(error / 4)
        print(f"{part} {step + 1}/{steps} loss {loss.item():.4f} PSNR {ratio:.2f} dB", flush=True)
