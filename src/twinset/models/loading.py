"""The one policy of opening a network: whole, from files of this machine, without code of its folder, or not at all.

* The class of a network is named here, never by its folder: no ``auto_map``, no ``trust_remote_code``.
* Weights are safetensors, GGUF or, of older checkpoints, files of torch of which only tensors are unpickled.
* Every tensor must be there, and none may be left over but those that are listed.
* No attention of kernels that a configuration names, and no quantized weights but GGUF's.
* Nothing asks the network: the hub's client is offline while files are read.

`models.files` finds the files. Layouts of papers' checkpoints are those of `models.encoders.checkpoints`, open_clip's
configurations are checked by `models.encoders.open_clip_files`.
"""

import errno
import pickle
import re
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.models.device import ran_out
from twinset.models.files import ModelFiles, read_json, refuse_adapter

NO_CODE = {"trust_remote_code": False}
#: Tensors that older versions of the libraries saved: numbers that follow from the configuration.
LEFT_OVER = (r"\bposition_ids$", r"\binv_freq$", r"\b(attn|attention)\.(masked_)?bias$")
ATTENTION = (None, "eager", "sdpa", "flash_attention_2")  # any other name can be code of the hub
_OPENING = RLock()
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # in which torch sets some of its messages
LONGEST = 300  # characters of a library's message: some have one line for each tensor


@contextmanager
def loading(place: Path) -> Iterator[None]:
    """`WrongUse` with the place for whatever its files make diffusers, transformers, tokenizers or safetensors raise.

    Memory that runs out and trouble with the disk stay what they are: another attempt can succeed.
    """
    try:
        with _offline():
            yield
    except (TwinsetError, ImportError):
        raise
    except Exception as error:
        if ran_out(error) or (isinstance(error, OSError) and error.errno):
            raise
        if isinstance(error, pickle.UnpicklingError):
            named = re.search(r"GLOBAL (\S+)", str(error))
            holds = f"needs {named[1]}, which could run code" if named else "holds more than tensors, or is damaged"
            raise WrongUse(
                f"{place}: is not loaded, as it {holds}; ask its authors for safetensors, or save its state_dict alone "
                "where you trust it"
            ) from error
        problem = " ".join(_COLOURS.sub("", str(error)).split())[:LONGEST] or type(error).__name__
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


def refuse_compressed(path: Path) -> None:
    """Raise `WrongUse` for a file of ``torch.save`` with compressed tensors: a few bytes would fill the memory, and
    torch itself compresses nothing.
    """
    if zipfile.is_zipfile(path):
        with loading(path), zipfile.ZipFile(path) as parts:
            # TorchScript packs its code, which is not read.
            listed = [one for one in parts.infolist() if not one.filename.endswith((".py", ".debug_pkl"))]
            packed = any(one.compress_type != zipfile.ZIP_STORED for one in listed)
        if packed:
            raise WrongUse(
                f"{path}: is compressed, as torch.save never is; unpack it where you trust it, save it again"
            )


def load_network(kind: Any, folder: Path, dtype: Any, left_over: Collection[str] = (), **options: Any) -> Any:
    """A network of transformers or diffusers, ready for inference on the CPU.

    Args:
        kind: class of one of the libraries with ``from_pretrained``; what the folder names as its class is not asked.
        dtype: torch's, or its name.
        left_over: patterns of names, besides `LEFT_OVER`, of tensors that the weights may have without a use for them.
        options: more for ``from_pretrained``.

    Raises:
        WrongUse: files are damaged or of another model, tensors are missing or left over, or an adapter lies beside
            them.
    """
    refuse_adapter(folder)
    for path in sorted(folder.glob("config.*json")):  # config.json can name one for a version of the library
        _check_settings(path)
    for path in sorted(folder.glob("*.bin")):
        refuse_compressed(path)
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()  # a build has its own
    options |= {"local_files_only": True, "output_loading_info": True}
    options |= {"torch_dtype": dtype} if kind.__module__.startswith("diffusers.") else {"dtype": dtype, **NO_CODE}
    with loading(folder / options.get("gguf_file", "")):
        network, found = kind.from_pretrained(folder, **options)
    if missing := found["missing_keys"]:
        others = f" (they have {_some(found['unexpected_keys'])})" if found["unexpected_keys"] else ""
        raise WrongUse(
            f"{folder}: the weights lack {_some(missing)} that config.json asks for, which would be random{others}; "
            "name a model that was trained for this, or get its files again, all from one model"
        )
    known = re.compile("|".join((*LEFT_OVER, *left_over)))
    if unknown := [name for name in found["unexpected_keys"] if not known.search(name)]:
        raise WrongUse(
            f"{folder}: the weights have {_some(unknown)} that {kind.__name__} has no use for; name a model that was "
            "trained for this, or get its files again, all from one model"
        )
    return network.eval()


def load_beside(kind: Any, folder: Path, **options: Any) -> Any:
    """A tokenizer or an image processor of transformers that lies beside a network; raises `WrongUse`.

    Args:
        kind: class of transformers with ``from_pretrained``.
        options: more for ``from_pretrained``.
    """
    with loading(folder / options.get("gguf_file", "")):
        opened = kind.from_pretrained(folder, local_files_only=True, **NO_CODE, **options)
    if not isinstance(longest := getattr(opened, "model_max_length", 0), int | float):
        raise WrongUse(f"{folder}/tokenizer_config.json: model_max_length is {longest!r:.40}; fetch the model again")
    return opened


def load_with_tokenizer(kind: str, files: ModelFiles, dtype: Any, left_over: Collection[str] = ()) -> tuple[Any, Any]:
    """Tokenizer and network on the CPU, from safetensors, where there are any; raises as `load_network`.

    Args:
        kind: name of a class of transformers. dtype, left_over: as `load_network`.
    """
    import transformers

    packed: dict[str, Any] = {"gguf_file": files.gguf} if files.gguf else {}
    tokenizer = load_beside(transformers.AutoTokenizer, files.folder, **packed)
    if any(path.suffix == ".safetensors" for path in files.paths):
        packed["use_safetensors"] = True
    network = load_network(getattr(transformers, kind), files.folder, dtype, left_over, **packed)
    check_vocabulary(tokenizer, network.config.get_text_config().vocab_size, files.folder)
    return tokenizer, network


def check_vocabulary(tokenizer: Any, vocabulary: int, folder: Path, longest: int = 0, unread: str = "") -> None:
    """Raise `WrongUse` where a tokenizer and the network that reads its tokens are of different models.

    Args:
        vocabulary: tokens that the network knows.
        folder: of the tokenizer, for messages.
        longest: tokens of a text that the network reads, where the tokenizer must know it; 0 where it need not.
        unread: a token of the tokenizer that texts never hold.
    """
    if (tokens := len(tokenizer) - (unread in tokenizer.get_vocab())) > vocabulary:
        raise WrongUse(
            f"{folder}: its tokenizer has {tokens:,} tokens and its network {vocabulary:,}; fetch both again, from one "
            "model, or name another model"
        )
    if longest and not 3 <= tokenizer.model_max_length <= longest:
        raise WrongUse(
            f"{folder}/tokenizer_config.json: model_max_length must be up to {longest}, what the network reads; write "
            "it there, or get the file again"
        )


def _check_settings(path: Path) -> None:
    """Raise `WrongUse` for settings that would import a kernel, need a library of quantized weights, or name others."""
    left: list[tuple[str, Any]] = [("", read_json(path))]
    while left:
        name, said = left.pop()
        if name == "quantization_config" and said:
            raise WrongUse(f"{path}: its weights are quantized ({name}); name the model without, or a GGUF file of it")
        if name == "transformers_weights":
            raise WrongUse(f"{path}: {name} names another file of weights than the model's own; remove it")
        if isinstance(said, dict):
            left += [(name if "attn_implementation" in name else str(key), one) for key, one in said.items()]
        elif isinstance(said, list):
            left += [(name, one) for one in said]
        elif "attn_implementation" in name and said not in ATTENTION:
            raise WrongUse(f"{path}: {name} is {said!r}, which could run code; remove it")


def _some(names: Collection[str]) -> str:
    return f"{len(names)} tensors ({', '.join(sorted(names)[:3])}{', ...' if len(names) > 3 else ''})"


@contextmanager
def _offline() -> Iterator[None]:
    """The hub's client asks nobody, whatever the environment says. One thread opens at a time."""
    try:
        from huggingface_hub import constants
    except ImportError:  # nothing that could ask is installed
        yield
        return
    with _OPENING:
        before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
        try:
            yield
        finally:
            constants.HF_HUB_OFFLINE = before
