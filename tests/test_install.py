"""The installed checkout: scripts find the module twinset, wherever they lie."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_a_script_beside_a_checkout_named_twinset_imports_the_module(tmp_path: Path) -> None:
    checkout = tmp_path / "twinset"
    checkout.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    (checkout / "src/twinset").mkdir(parents=True)
    (checkout / "src/twinset/__init__.py").write_text("load = 'found'\n")
    venv.create(tmp_path / "env")
    python = tmp_path / "env/bin/python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "env")}))
    (packages / "built_with.pth").write_text(sysconfig.get_path("purelib"))  # setuptools, of the lock's version
    install = [Path(sys.executable).parent / "uv", "pip", "install", "--quiet", "--offline", "--python", python]
    # As the Makefile does.
    subprocess.run(
        [*install, "--no-deps", "--no-build-isolation", "--editable", "."], cwd=checkout, timeout=60, check=True
    )
    (tmp_path / "script.py").write_text("import twinset; print(twinset.load)")
    done = subprocess.run([python, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "found\n"), done.stderr
