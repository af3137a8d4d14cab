"""The files of a CLIP model that scores, found without the libraries that load it."""

from __future__ import annotations

from pathlib import Path

from generators.prompt_to_prompt.model_files import ModelMissing, local_folder
from manifests.canonical import digest, sha256_of_file

FILES = ("config.json", "model.safetensors", "preprocessor_config.json")
TOKENIZER = ("tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json")


def scorer_folder(name: str) -> Path:
    """The folder of a CLIP model by its path or its hub id, with all files that loading needs; else `ModelMissing`."""
    layout = f"A CLIP model is a folder with {', '.join(FILES)} and tokenizer.json, or vocab.json and merges.txt"
    folder = local_folder(name, layout)
    missing = [file for file in FILES if not (folder / file).is_file()]
    if not (folder / "tokenizer.json").is_file():
        missing += [file for file in TOKENIZER[1:3] if not (folder / file).is_file()]
    if missing:
        raise ModelMissing(f"the scorer {name} lacks {', '.join(missing)}: put them into {folder}. {layout}")
    return folder


def scorer_digest(name: str) -> str:
    """One digest of all files that decide what the model scores."""
    folder = scorer_folder(name)
    used = [folder / file for file in (*FILES, *TOKENIZER) if (folder / file).is_file()]
    return digest({path.name: sha256_of_file(path)[0] for path in used})
