"""BiVLC: SugarCrepe's pairs with an image generated from each negative caption (Miranda et al., 2024)."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from twinset.evaluation.benchmarks.json_items import text_of
from twinset.evaluation.benchmarks.parquet_rows import ParquetRows, parquet_splits
from twinset.evaluation.benchmarks.reader import MISSING, Item, Reader
from twinset.evaluation.examples import LeftOut, Matching

IMAGES = ("image", "negative_image")
WORDS = ("caption", "negative_caption", "type", "subtype")


class BiVlc(Reader):
    """Parquet: ``image, caption, negative_caption, negative_image, type, subtype``, as released and as exported.

    The release does not say which of COCO's images a row has, and several rows share one. Their group is the digest of
    the image, so the column of images is read once for it, in batches, before the rows of a file.
    """

    name = "bivlc"
    title = "BiVLC (2024)"
    citation = "https://arxiv.org/abs/2406.09952"
    expects = "data/test-00000-of-00002.parquet and the other part, or what `twinset export --format bivlc` wrote"
    obtained = "They are in the data set imirandam/BiVLC of Hugging Face"

    def found(self) -> Sequence[str]:
        """As `Reader.found`: splits; the release has ``test`` alone."""
        return sorted(self._splits)

    def files(self) -> Sequence[Path]:
        return [path for split in self.subsets for path in self._splits[split]]

    def items(self, subset: str) -> Iterator[Item]:
        row = 0
        for path in self._splits[subset]:
            rows = ParquetRows(path, IMAGES, WORDS)
            photos = rows.digests(IMAGES[0])
            for number, (record, photo) in enumerate(zip(rows.rows(), photos, strict=True)):
                where = f"{path} row {number}"
                if photo:
                    kind = [record[field] or "" for field in WORDS[2:]]
                    yield Matching(
                        key=f"{subset}/{row:06d}",
                        subset=subset,
                        group=photo[:16],
                        category="_".join(kind) if all(kind) else "",
                        images=(rows.picture(number, IMAGES[0]), rows.picture(number, IMAGES[1])),
                        captions=(text_of(record, WORDS[0], where), text_of(record, WORDS[1], where)),
                    )
                else:
                    yield LeftOut(where, MISSING)
                row += 1

    @cached_property
    def _splits(self) -> dict[str, list[Path]]:
        return parquet_splits(self.data)
