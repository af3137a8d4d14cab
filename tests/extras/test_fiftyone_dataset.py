"""The export for FiftyOne; what it opens was tried with fiftyone 1.22.1 and its database."""

import json
from collections import Counter
from pathlib import Path

from tests.made_datasets import MadeDataset
from twinset.shards.export.formats import export
from twinset.shards.records import subsets_in


def test_each_sample_is_a_group_whose_slices_have_all_fields(
    made_pairs: MadeDataset, made_templates: MadeDataset, tmp_path: Path
) -> None:
    store = made_pairs.store
    count = export(store, subsets_in(store), "fiftyone", tmp_path / "export")
    assert json.loads((tmp_path / "export/metadata.json").read_text()) == {"media_type": "group"}
    slices = json.loads((tmp_path / "export/samples.json").read_text())["samples"]
    assert len({entry["group"]["_id"]["$oid"] for entry in slices}) == count
    assert all((tmp_path / "export" / entry["filepath"]).is_file() for entry in slices)
    names = Counter((entry["kind"], entry["group"]["name"]) for entry in slices)
    assert {("pair", "image0"), ("pair", "image1"), ("template", "reference"), ("template", "target")} <= {*names}
    pair = next(entry for entry in slices if entry["kind"] == "pair")
    assert {"key", "subset", "tags", "caption0", "caption1", "licence", "source_group", "scores"} <= pair.keys()
    values = [value for entry in slices for field in ("scores", "provenance") for value in entry[field].values()]
    assert {type(value) for value in values} <= {str, int, float, bool}, "one type a field, for its database"
