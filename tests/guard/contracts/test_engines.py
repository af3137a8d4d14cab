"""The contract of engines: settings survive the way to a worker, explain their reasons, and miss an absent model."""

from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.doors import Registry
from twinset.contracts.errors import TwinsetError
from twinset.contracts.parts import check_settings
from twinset.models.image_engine import IMAGE_ENGINES
from twinset.models.language_models.settings import LANGUAGE_MODELS

SERVER = {"model": "m", "base_url": "http://127.0.0.1:1/v1"}
#: By door and kind: settings beside the kind; MODEL stands for a folder that is absent.
CASES: dict[tuple[str, str], dict[str, Any]] = {
    ("image engine", "diffusers"): {"model": "MODEL", "licence": "CC0-1.0"},
    ("image engine", "images-server"): {**SERVER, "licence": "CC0-1.0"},
    ("language model", "openai"): SERVER,
    ("language model", "transformers"): {"model": "MODEL"},
    ("language model", "vlm"): {"model": "MODEL"},
    ("language model", "vqa"): {"model": "MODEL"},
}
DOORS: tuple[Registry[Any], ...] = (IMAGE_ENGINES, LANGUAGE_MODELS)
#: Twinset's own: those of other packages have tests in their packages.
ALL = [(door, kind) for door in DOORS for kind in door.own()]


@pytest.mark.parametrize(("door", "kind"), ALL, ids=[f"{door.what} {kind}" for door, kind in ALL])
def test_an_engine_keeps_the_contract(door: Registry[Any], kind: str, tmp_path: Path) -> None:
    assert (door.what, kind) in CASES, f"{door.what} {kind} has no case: write its settings in CASES"
    absent = str(tmp_path / "absent")
    given = {name: absent if value == "MODEL" else value for name, value in CASES[door.what, kind].items()}
    settings = door.find(kind).model_validate({"kind": kind, **given})
    check_settings(settings)
    assert settings.kind == kind and type(settings).__doc__
    if absent in given.values():
        with pytest.raises(TwinsetError, match="absent"):
            settings.check_inputs("engine", ("models",))
