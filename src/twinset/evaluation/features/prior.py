"""Removes from scores what a text gets without its image (VisualGPTScore, Lin et al. 2024).

    s'_ij = log P(t_j | i) - α log P(t_j | null image)

α is swept on one half of the groups and used on the other, each way: no group is scored with an α that saw it.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.shards.storage.whole_file import whole_file

ALPHAS = np.arange(21) / 20
_COLUMNS = ("s00", "s01", "s10", "s11", "prior0", "prior1")
_ROWS = 16_384  # a batch
_KEY = b"twinset"
Values = NDArray[np.float32]


def remove_prior(path: Path) -> None:
    """Write a table of scores again without the prior; its metadata gets ``alpha_0`` and ``alpha_1``, those of both
    halves. Rows without a prior, of which a pair was not answered, stay as they are. Raises `WrongUse`: all rows are
    of one group.
    """
    file = pq.ParquetFile(path)
    read = [(_halves(batch), _values(batch)) for batch in file.iter_batches(_ROWS, columns=["group", *_COLUMNS])]
    halves, values = np.concatenate([half for half, _ in read]), np.concatenate([one for _, one in read], axis=1)
    if len({*halves.tolist()}) < 2:
        raise WrongUse(f"{path}: too few groups to choose alpha on others; ask by visualgptscore, or more examples")
    alphas = np.array([best_alpha(values[:, halves != half]) for half in (0, 1)])
    schema = file.schema_arrow
    about = json.loads((schema.metadata or {})[_KEY]) | {f"alpha_{half}": float(alphas[half]) for half in (0, 1)}
    with whole_file(path) as temporary:
        writer = pq.ParquetWriter(temporary, schema.remove_metadata(), store_schema=False)
        for batch in file.iter_batches(_ROWS):
            scores, alpha = _values(batch), alphas[_halves(batch)]
            for place, name in enumerate(_COLUMNS[:4]):
                less = scores[place] - alpha * np.nan_to_num(scores[4 + place % 2])
                column = pa.array(less.astype(np.float32), pa.float32(), mask=np.isnan(scores[place]))
                batch = batch.set_column(batch.schema.get_field_index(name), schema.field(name), column)
            writer.write_batch(batch.replace_schema_metadata(None))
        writer.add_key_value_metadata({_KEY: json.dumps(about, sort_keys=True)})
        writer.close()


def best_alpha(values: Values) -> float:
    """The least of `ALPHAS` with the most rows whose captions all go to their image.

    Args:
        values: of `_COLUMNS`, shape (6, rows); NaN where there is none.
    """
    s00, s01, s10, s11, prior0, prior1 = values
    apart = np.nan_to_num(prior0 - prior1)
    # A second image, where there is none, is right.
    right = [((s00 - s01 > alpha * apart) & (np.isnan(s10) | (s11 - s10 > -alpha * apart))).sum() for alpha in ALPHAS]
    return float(ALPHAS[int(np.argmax(right))])


def _values(batch: pa.RecordBatch) -> Values:
    return np.stack([np.asarray(batch.column(name).to_numpy(zero_copy_only=False), np.float32) for name in _COLUMNS])


def _halves(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """0 or 1 by the group, as good as at random."""
    digests = (hashlib.blake2b(one.encode(), digest_size=1).digest() for one in batch.column("group").to_pylist())
    return np.array([one[0] & 1 for one in digests], np.int64)
