"""A recipe of others, read before it is run: every path outside of its folder, every host, every variable."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import twinset
from twinset.cli.main import main

SOURCE = "subsets.n.source"


def recipe(folder: Path, captions: Any, **engine: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "captions.jsonl").write_text('{"caption_id": "1", "image_id": "1", "caption": "A dog."}\n')
    engine = {"kind": "openai", "model": "m", "base_url": "https://evil.net:8443/v1", **engine}
    source = {"kind": "negative-captions", "captions": captions, "engine": engine}
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump({"name": "theirs", "subsets": {"n": {"source": source}}}))
    return path


def test_a_plan_lists_what_a_recipe_names_outside_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stranger's recipe reads ~/.ssh by `..`, `~` or a link, and asks a host with a variable: said before it does."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "private").mkdir()
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "private")
    captions = ["captions.jsonl", "~/.ssh/id_ed25519", "../private/x.jsonl", "link/x.jsonl", "$HOME/x.jsonl"]
    path = recipe(folder, captions, api_key_variable="GH_TOKEN", answers="/var/spool")
    assert main(["plan", str(path), "--json"]) == 2  # a file is absent; what is named is said all the same
    assert capsys.readouterr().err.splitlines()[:-1] == [
        f"reads {tmp_path}/home/.ssh/id_ed25519 ({SOURCE}.captions)",
        f"reads {tmp_path}/private/x.jsonl ({SOURCE}.captions)",
        f"reads {folder}/link/x.jsonl ({SOURCE}.captions)",
        f"writes /var/spool ({SOURCE}.engine.answers)",
        f"asks the host https://evil.net:8443 ({SOURCE}.engine.base_url)",
        f"sends the value of GH_TOKEN ({SOURCE}.engine.api_key_variable)",
    ]
    path = recipe(folder, "captions.jsonl", api_key_variable="GH_TOKEN")
    assert main(["plan", str(path), "--json"]) == 0
    named = json.loads(capsys.readouterr().out)["outside"]
    assert named == twinset.plan(path)["outside"]
    assert named["reads"] == {} and named["hosts"] == {f"{SOURCE}.engine.base_url": ["https://evil.net:8443"]}
