"""Networks of Hugging Face's libraries, loaded whole from files of this machine, or not at all; tensors, written."""

from __future__ import annotations

import errno
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twinset.manifests.errors import TwinsetError, WrongUse
from twinset.models.files import refuse_adapter

LONGEST = 300  # characters of a library's message: some have one line for each tensor


@contextmanager
def loading(place: Path) -> Iterator[None]:
    """`WrongUse` with the place for whatever its files make diffusers, transformers, tokenizers or safetensors raise.

    Memory that runs out and trouble with the disk stay what they are: another attempt can succeed.
    """
    from twinset.models.device import ran_out

    try:
        yield
    except (TwinsetError, ImportError):
        raise
    except Exception as error:
        if ran_out(error) or (isinstance(error, OSError) and error.errno):
            raise
        problem = " ".join(str(error).split())[:LONGEST] or type(error).__name__
        raise WrongUse(
            f"{place}: cannot be loaded ({problem}); get its files again: weights may have been cut short, or belong "
            "to another config.json"
        ) from error


@contextmanager
def saving(place: Path, then: str = "") -> Iterator[None]:
    """Raise errors of safetensors as OSError: it names the system's error, such as a full disk, only in its text.

    Args:
        place: of the file, for the message. then: what the message adds.
    """
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        said = f"{error}; {then}" if then else str(error)
        raise OSError(int(number[1]) if number else errno.EIO, said, str(place)) from error


def refuse_missing(place: Path, missing: Collection[str]) -> None:
    """Raise `WrongUse` for tensors that weights lack: they would be random, and differ from process to process.

    Args:
        place: of the weights, for the message.
        missing: names of the tensors.
    """
    if missing:
        named = ", ".join(sorted(missing)[:3]) + (", ..." if len(missing) > 3 else "")
        raise WrongUse(
            f"{place}: the weights lack {len(missing)} tensors that config.json asks for ({named}), which would be "
            "random; name a model that was trained for this, or get its files again, all from one model"
        )


def load_network(kind: Any, folder: Path, dtype: Any, **options: Any) -> Any:
    """A network of transformers, ready for inference on the CPU; only code of the library runs.

    Args:
        kind: class of transformers with ``from_pretrained``.
        dtype: torch's, or its name.
        options: more for ``from_pretrained``.

    Raises:
        WrongUse: files are damaged or of another model, tensors are missing, or an adapter lies beside them.
    """
    refuse_adapter(folder)
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()  # a build has its own
    options = {"local_files_only": True, "trust_remote_code": False, **options}
    with loading(folder / options.get("gguf_file", "")):
        network, found = kind.from_pretrained(folder, dtype=dtype, output_loading_info=True, **options)
    refuse_missing(folder, found["missing_keys"])
    return network.eval()


def load_beside(kind: Any, folder: Path, **options: Any) -> Any:
    """A tokenizer or an image processor of transformers that lies beside a network; raises `WrongUse`.

    Args:
        kind: class of transformers with ``from_pretrained``.
        options: more for ``from_pretrained``.
    """
    with loading(folder / options.get("gguf_file", "")):
        return kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **options)
