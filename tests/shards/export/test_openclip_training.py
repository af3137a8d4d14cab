"""Which webdataset open_clip's loader for training reads an export with, as docs/export.md says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.made_datasets import MadeDataset
from twinset.shards.export.formats import export

TRAIN = """
import glob, sys
from argparse import Namespace
import numpy as np
from open_clip_train import data
options = Namespace(
    train_data="::".join(sorted(glob.glob(sys.argv[1] + "/*.tar"))), train_num_samples=None, dataset_resampled=False,
    train_data_upsampling_factors=None, seed=0, batch_size=4, workers=0, world_size=1,
)
loader = data.get_wds_dataset(options, np.array, is_train=True, tokenizer=lambda text: [text])
print(sum(len(texts) for images, texts in loader.dataloader), "rows")
"""


@pytest.mark.slow
def test_the_training_loader_reads_with_0_2_86_and_not_with_1_0(made_pairs: MadeDataset, tmp_path: Path) -> None:
    pytest.importorskip("open_clip_train")
    older = tmp_path / "older"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(older), "webdataset==0.2.86"]
    if subprocess.run(pip, check=False, capture_output=True).returncode:
        pytest.skip("webdataset 0.2.86 cannot be installed here")
    assert export(made_pairs.store, ["eq-ag"], "openclip", tmp_path / "clip") == 8

    def train(path: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", TRAIN, str(tmp_path / "clip")]
        return subprocess.run(
            command, check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
        )

    read = train(str(older))
    assert read.stdout == "16 rows\n", read.stderr
    failed = train("")
    assert failed.returncode != 0 and "KeyError: 'fname'" in failed.stderr, "it reads now: correct docs/export.md"
