"""The one policy of opening a network: whole, from files of this machine, without code of its folder, or not at all.

* The class of a network is named here, never by its folder: no ``auto_map``, no ``trust_remote_code``.
* Weights are safetensors, GGUF or, of older checkpoints, files of torch of which only tensors are unpickled.
* Every tensor must be there, and none may be left over but those that are listed.
* No attention of kernels that a configuration names, and no quantized weights but GGUF's.
* Nothing asks the network: files are read with ``local_files_only``.

`models.files` finds the files. `models.encoders` has papers' checkpoints and open_clip's configurations.
"""

import errno
import pickle
import re
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.models.device import ran_out
from twinset.models.files import ModelFiles, read_json, refuse_adapter

NO_CODE = {"trust_remote_code": False}
#: Tensors that older versions of the libraries saved: numbers that follow from the configuration.
LEFT_OVER = (r"\bposition_ids$", r"\binv_freq$", r"\b(attn|attention)\.(masked_)?bias$")
ATTENTION = (None, "eager", "sdpa", "flash_attention_2")  # any other name can be code of the hub
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # in which torch sets some of its messages
LONGEST = 300  # characters of a library's message: some have one line for each tensor


@contextmanager
def loading(place: Path) -> Iterator[None]:
    """`WrongUse` with the place for whatever its files make diffusers, transformers, tokenizers or safetensors raise.

    Memory that runs out and trouble with the disk stay what they are: another attempt can succeed.
    """
    try:
        yield
    except (TwinsetError, ImportError):
        raise
    except Exception as error:
        if ran_out(error) or (isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)):
            raise  # torch seeks to before the beginning of a file that was cut short
        problem = " ".join(_COLOURS.sub("", str(error)).split())[:LONGEST] or type(error).__name__
        remedy = "get its files again: weights may have been cut short, or belong to another config.json"
        if isinstance(error, pickle.UnpicklingError):
            named = re.search(r"GLOBAL (\S+)", str(error))
            problem = f"it needs {named[1]}, which could run code" if named else "damaged, or more than tensors"
            remedy = "ask its authors for safetensors, or save its state_dict alone where you trust it"
        raise WrongUse(f"{place}: cannot be loaded ({problem}); {remedy}") from error


@contextmanager
def saving(place: Path, then: str = "") -> Iterator[None]:
    """Raise errors of safetensors as OSError: it names the system's error, such as a full disk, only in its text.
    place, then: of the file, and what the message adds.
    """
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, f"{error}; {then}" if then else str(error), str(place)) from error


def check_archive(path: Path) -> None:
    """Raise `WrongUse` for a file of torch with code, or with compressed tensors: a few bytes would fill the memory."""
    if not zipfile.is_zipfile(path):
        return
    with loading(path), zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    if any("/code/" in part.filename for part in parts):
        raise WrongUse(
            f"{path}: a TorchScript archive, which holds code (OpenAI's original files are such); name the tag "
            "instead, such as open_clip:ViT-B-32:openai, or convert its state_dict"
        )
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts):
        raise WrongUse(f"{path}: is compressed, as torch.save never does; save it again where you trust it")


def load_network(kind: Any, folder: Path, dtype: Any, left_over: Collection[str] = (), **options: Any) -> Any:
    """A network of transformers or diffusers, ready for inference on the CPU.

    Args:
        kind: class of one of the libraries with ``from_pretrained``; what the folder names as its class is not asked.
        dtype: torch's, or its name.
        left_over: patterns of names of tensors that the weights may have without a use, besides `LEFT_OVER`.
        options: more for ``from_pretrained``.

    Raises:
        WrongUse: files are damaged or hostile, or tensors are missing or left over.
    """
    refuse_adapter(folder)
    _check_names(folder)
    if (path := folder / "config.json").is_file():
        _check_settings(path)
    for path in sorted(folder.glob("*.bin")):
        check_archive(path)
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()  # a build has its own
    options |= {"local_files_only": True, "output_loading_info": True}
    options |= {"torch_dtype": dtype} if kind.__module__.startswith("diffusers.") else {"dtype": dtype, **NO_CODE}
    with loading(folder / options.get("gguf_file", "")):
        network, report = kind.from_pretrained(folder, **options)
    known = re.compile("|".join((*LEFT_OVER, *left_over)))
    unused = [name for name in report["unexpected_keys"] if not known.search(name)]
    for verb, names, why in (
        ("lack", report["missing_keys"], "which config.json asks for and would be random"),
        ("have", unused, f"which {kind.__name__} has no use for"),
    ):
        if names:
            raise WrongUse(
                f"{folder}: the weights {verb} {len(names)} tensors ({', '.join(sorted(names)[:3])}), {why}; name a "
                "model that was trained for this, or get its files again, all from one model"
            )
    return network.eval()


def load_beside(kind: Any, folder: Path, **options: Any) -> Any:
    """A tokenizer or an image processor that lies beside a network; raises `WrongUse`. kind, options: as
    `load_network`.
    """
    _check_names(folder)
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


def _check_names(folder: Path) -> None:
    """Raise `WrongUse` where files for versions of transformers would be read in the place of the usual ones."""
    for name, key in (("config.json", "configuration_files"), ("tokenizer_config.json", "fast_tokenizer_files")):
        if (path := folder / name).is_file() and key in read_json(path):
            raise WrongUse(f"{path}: {key} names other files for some versions of transformers; remove it")


def _check_settings(path: Path) -> None:
    """Raise `WrongUse` for settings that would import a kernel, need a library of quantized weights, or name others."""
    left: list[tuple[str, Any]] = [("", read_json(path))]
    while left:
        name, value = left.pop()
        if name == "quantization_config" and value:
            raise WrongUse(f"{path}: its weights are quantized ({name}); name the model without, or a GGUF file of it")
        if name == "transformers_weights":
            raise WrongUse(f"{path}: {name} names another file of weights than the model's own; remove it")
        if isinstance(value, dict):
            left += [(name if "attn_implementation" in name else str(key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            left += [(name, inner) for inner in value]
        elif "attn_implementation" in name and value not in ATTENTION:
            raise WrongUse(f"{path}: {name} is {value!r}, which could run code; remove it")
