"""Values that differ have digests that differ, whatever lies beside them."""

import numpy as np
import pyarrow as pa

from twinset.evaluation.score_files.batch import Batch
from twinset.evaluation.score_files.opening import digests


def test_digests_tell_values_apart() -> None:
    texts = ["", "\0", "\0\0", "a", "a\0", "ä", *("x" * n for n in (7, 8, 9, 255, 256, 257, 3000)), "x" * 2999 + "y"]
    texts += [f"{kind}{row}" for kind in ("", "video-", "a long name of a video, ") for row in range(50_000)]
    found = digests(Batch("here", 1, {"group": pa.array(texts)}), ["group"])
    assert len({*found.tolist()}) == len(texts)
    sliced = Batch("here", 1, {"group": pa.array(texts).slice(3, 11)})
    np.testing.assert_array_equal(digests(sliced, ["group"]), found[3:14])
