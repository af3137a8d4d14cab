"""Settings of Prefect in the working folder, which may be a download, are refused before Prefect reads them."""

import re
from pathlib import Path

import pytest

from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.flows.working_folder import refuse_settings_of_the_folder

LOGS = "[logging]\nconfig_path = './evil.yml'\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prefect.toml", LOGS),
        ("pyproject.toml", LOGS.replace("logging", "tool.prefect.logging")),
        ("pyproject.toml", "tool = 1"),
        (".env", "export prefect_logging_config_path=./evil.yml"),
    ],
)
def test_settings_that_could_name_code_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(WrongUse, match=re.escape(str(tmp_path / name))):
        refuse_settings_of_the_folder()
    (tmp_path / "evil.yml").write_text("handlers: {a: {(): subprocess.getoutput, cmd: touch was_run}}\n")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    assert main(["build", "demo", "--out", "out"]) == 2
    assert "another folder" in capsys.readouterr().err and not (tmp_path / "was_run").exists()


def test_other_settings_are_no_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n")
    (tmp_path / ".env").write_text("LANG=C\n")
    refuse_settings_of_the_folder()
