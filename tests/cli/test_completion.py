"""``twinset completion``: what the shell completes, in bash itself."""

import shutil
import subprocess

import pytest

from twinset.cli.main import main

ASK = """
{script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_twinset
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("twinset bui", "build"),
        ("twinset train co", "combiner"),
        ("twinset build demo --run", "--runner"),
        ("twinset build demo --runner thr", "threads"),
        ("twinset build demo --out tr", ""),
        ("twinset export out --format eq", "eqben"),
        ("twinset eval run --device g", "gpu"),
        ("twinset --verbose eval sc", "scores"),
        ("twinset eval run --only build --mo", "--model"),
        ("twinset completion z", "zsh"),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_words_are_completed(words: str, completed: str, shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """zsh runs bash's function by its own bashcompinit, where both shells have the same arrays."""
    if (program := shutil.which("bash")) is None:
        pytest.skip("no bash here")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    begins = "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n" if shell == "zsh" else ""
    assert script.startswith(begins)
    asked = ASK.format(script=script.removeprefix(begins), words=words)
    done = subprocess.run([program, "-c", asked], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{completed}\n", "")
