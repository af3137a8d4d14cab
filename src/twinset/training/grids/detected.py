"""What detectors of natural and synthetic halves get right of a test without comparing image and caption (BiVLC 5)."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.blind_probes.detectors import detector_outcomes, read_detectors, told_right
from twinset.evaluation.blind_probes.pairs import read_pairs
from twinset.evaluation.blind_probes.run import encoder_of
from twinset.evaluation.metrics.detection import TOLD
from twinset.evaluation.metrics.matching import CORRECT, RELEASED
from twinset.models.encoders.contract import NotApplicable, Running
from twinset.shards.storage.whole_file import whole_file


def write_detected(benchmark: Reader, folder: Path, model: str, path: Path, running: Running) -> None:
    """Write a table of outcomes as `evaluation.metrics` reads them: of two images four, and `TOLD`, else one.

    Args:
        folder: of the detectors. model: whose features they read.

    Raises:
        NotApplicable: the test has no pairs, or two images a pair and the detectors are of captions alone.
    """
    try:
        pairs = read_pairs(benchmark)
    except WrongUse as error:
        raise NotApplicable(str(error)) from error
    detectors = read_detectors(folder)
    texts, images = encoder_of(model, None, running, detectors)(pairs)
    usable = np.ones(len(pairs), np.bool_) if images is None else ~np.isnan(images).any(axis=(1, 2))
    of_texts = detectors.text(texts[usable])
    if images is None:  # it is natural
        found = {CORRECT[0]: of_texts[:, 0] < of_texts[:, 1]}
    elif detectors.image is None:
        raise NotApplicable(f"{benchmark.title}: has images of both kinds, and the detectors are of captions alone")
    else:
        of_images = detectors.image(images[usable])
        outcomes = detector_outcomes(of_texts, of_images)
        found = {name: outcomes[name] for name in RELEASED[0]}
        found |= dict(zip(TOLD, [*told_right(of_texts).T, *told_right(of_images).T], strict=True))
    told = {"twinset": json.dumps({"metrics": ["detection"] if TOLD[0] in found else []})}
    table = pa.table({"key": np.flatnonzero(usable), "group": pairs.groups[usable], **found}, metadata=told)
    with whole_file(path) as unfinished:
        pq.write_table(table, unfinished)
