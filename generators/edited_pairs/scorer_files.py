"""The files of a CLIP model that scores, found without the libraries that load it."""

from __future__ import annotations

from pathlib import Path

from generators.prompt_to_prompt.model_files import TOKENIZERS, ModelMissing, local_folder, sha256_once
from manifests.canonical import digest

FILES = ("config.json", "model.safetensors", "preprocessor_config.json")


def scorer_folder(name: str) -> Path:
    """The folder of a CLIP model by its path or its hub id, with all files that loading needs; else `ModelMissing`."""
    layout = f"A CLIP model is a folder with {', '.join(FILES)} and tokenizer.json, or vocab.json and merges.txt"
    folder = local_folder(name, layout)
    missing = [file for file in FILES if not (folder / file).is_file()]
    if not (folder / "tokenizer.json").is_file():
        missing += [file for file in TOKENIZERS[:2] if not (folder / file).is_file()]
    if missing:
        raise ModelMissing(f"the scorer {name} lacks {', '.join(missing)}: put them into {folder}. {layout}")
    return folder


def scorer_digest(name: str) -> str:
    """One digest of all files that decide what the model scores. A process reads them once."""
    folder = scorer_folder(name)
    used = [folder / file for file in (*FILES, *TOKENIZERS) if (folder / file).is_file()]
    return digest({path.name: sha256_once(path) for path in used})
