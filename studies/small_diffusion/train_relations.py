"""Train the small model of two things: ``python -m studies.small_diffusion.train_relations --out FOLDER``.

It begins with the small model, which knows shapes, colours and places already, and keeps its autoencoder as it is. The
text encoder has two layers more, since the order of words must tell which colour belongs to which thing and where each
one stands; they begin without effect (their outputs are zero). Words that the small model does not know are new tokens,
the others keep what they mean.

Several processes share each batch: ``torchrun --standalone --nproc-per-node 2 -m studies.small_diffusion...``.
"""

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import CLIPTextModel, CLIPTokenizer

from studies.small_diffusion.autoencoder import as_tensor, new_autoencoder
from studies.small_diffusion.train import BATCH, Examples, Training, rate_at
from twinset.contracts.kinds.samples import Pixels
from twinset_demo.models import SMALL
from twinset_demo.small_diffusion.layout import LENGTH, new_text_encoder, new_tokenizer, new_unet
from twinset_demo.small_diffusion.painter import paint_arrangement
from twinset_demo.small_diffusion.relations import is_held_out, sample_arrangement

RATE = 5e-4
LAYERS = 4  # of the text encoder
KEPT_EVERY = 100  # steps
CHUNK = 500  # pictures that are painted and encoded at a time


def main() -> None:
    """Train, or go on with training, and save the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="OUT/model is the model; the rest is there to go on")
    parser.add_argument("--model", type=Path, default=SMALL.folder, help="the model to begin with")
    parser.add_argument("--pictures", type=int, default=16_000)
    parser.add_argument("--steps", type=int, default=1400, help="the fall included")
    parser.add_argument("--fall", type=int, default=700, help="last steps, in which the learning rate falls to zero")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if "WORLD_SIZE" in os.environ:  # set by torchrun
        torch.distributed.init_process_group("gloo")
    given.out.mkdir(parents=True, exist_ok=True)
    vae = _with_weights(new_autoencoder(fine=True), given.model / "vae").to(given.device)
    with TemporaryDirectory() as folder:  # of each process its own
        tokenizer = relation_tokenizer(Path(folder))
    training = RelationTraining(tokenizer, given.seed, given.device, given.out, beginning(given.model, tokenizer))
    examples = relation_examples(vae, training, given.pictures)
    while training.step < given.steps:
        training.advance(examples, rate_at(training.step, given.steps, given.fall, RATE))
        if training.step % KEPT_EVERY == 0 or training.step == given.steps:
            training.keep(vae)


class RelationTraining(Training):
    """Noisy timesteps come more often: there it is decided what stands where, and the rest is known already."""

    def timesteps(self, rng: torch.Generator) -> torch.Tensor:
        """54 of 100 are in the noisiest 40 %."""
        share = 1 - torch.rand(BATCH, generator=rng) ** 1.5
        return (share * len(self.alphas)).long().clamp(max=len(self.alphas) - 1)


def relation_tokenizer(folder: Path) -> Any:
    """The tokenizer of captions of two things."""
    rng = np.random.default_rng(0)
    return new_tokenizer(folder, sorted({sample_arrangement(rng).caption() + "." for _ in range(4000)}))


def beginning(model: Path, tokenizer: Any) -> tuple[Any, Any]:
    """UNet and text encoder that say with known words what a model does, and have room for new ones."""
    unet = _with_weights(new_unet(), model / "unet")
    known: Any = CLIPTextModel.from_pretrained(model / "text_encoder", torch_dtype=torch.float32, use_safetensors=True)
    text = new_text_encoder(tokenizer, LAYERS)
    names = CLIPTokenizer.from_pretrained(model / "tokenizer").get_vocab()
    with torch.no_grad():
        for layer in text.encoder.layers:
            for last in (layer.self_attn.out_proj, layer.mlp.fc2):
                last.weight.zero_()
                last.bias.zero_()
        words = {name: part for name, part in known.state_dict().items() if "token_embedding" not in name}
        text.load_state_dict({**text.state_dict(), **words})
        old, new = known.get_input_embeddings().weight, text.get_input_embeddings().weight
        for word, index in tokenizer.get_vocab().items():
            if word in names:
                new[index] = old[names[word]]
    return unet, text


def _with_weights(part: Any, folder: Path) -> Any:
    """A new part with saved weights; `from_pretrained` would have it name the folder wherever it is saved."""
    part.load_state_dict(load_file(folder / "diffusion_pytorch_model.safetensors"))
    return part.eval()


def arrangements(rng: np.random.Generator, number: int) -> tuple[list[str], list[Pixels]]:
    """Captions and pictures (64, 64, 3) that training may see."""
    captions: list[str] = []
    drawn: list[Pixels] = []
    while len(drawn) < number:
        scene = sample_arrangement(rng)
        if not is_held_out(scene):
            captions.append(scene.caption())
            drawn.append(paint_arrangement(scene, rng))
    return captions, drawn


@torch.no_grad()
def relation_examples(vae: Any, training: RelationTraining, number: int) -> Examples:
    """Latents and tokens of so many pictures, with and without a full stop; kept in the folder for a next run.

    Of several processes each makes its share of them.
    """
    files = [training.folder / "examples" / f"{chunk:04}.safetensors" for chunk in range(-(-number // CHUNK))]
    files[0].parent.mkdir(parents=True, exist_ok=True)
    settings = {"padding": "max_length", "max_length": LENGTH, "truncation": True, "return_tensors": "pt"}
    for chunk, file in list(enumerate(files))[training.rank :: training.ranks]:
        if not file.exists():
            said, drawn = arrangements(np.random.default_rng([training.seed, 4, chunk]), CHUNK)
            said = [caption + ("." if index % 2 else "") for index, caption in enumerate(said)]
            latents = vae.encode(as_tensor(np.stack(drawn)).to(training.device)).latents.cpu()
            part = file.with_suffix(".new")
            save_file({"latents": latents, "tokens": training.tokenizer(said, **settings).input_ids}, part)
            part.replace(file)
    if training.ranks > 1:
        torch.distributed.barrier()
    chunks = [load_file(file) for file in files]
    latents, tokens = (torch.cat([chunk[name] for chunk in chunks]) for name in ("latents", "tokens"))
    return Examples(latents, tokens, training.tokenizer([""], **settings).input_ids[0])


if __name__ == "__main__":
    main()
