"""The card and the previews of a dataset of several kinds, as they are published."""

from pathlib import Path

import datasets
import pytest
import yaml

from tests.made_datasets import MadeDataset
from twinset.cards.publication import Part, dataset_card, part_of, write_preview
from twinset.contracts.errors import WrongUse
from twinset.shards.read import read_samples


def parts_of(made: MadeDataset) -> list[Part]:
    made.describe()
    return [part_of(made.store, name) for name in made.stages]


@pytest.mark.slow
def test_subsets_without_tars_are_no_configuration_beside_those_with(made_triplets: MadeDataset) -> None:
    """`load_dataset` takes the first configuration's format for that of all, and would read Parquet as a tar."""
    parts = parts_of(made_triplets)
    card = dataset_card(parts, [], "lab/made", None, "")
    configs = yaml.safe_load(card.split("---\n")[1])["configs"]
    assert [one["config_name"] for one in configs] == ["triplets", "two-images"]
    assert 'load_dataset("lab/made", "two-images")' in card
    assert 'index_only = load_dataset("lab/made", data_files="index-only/_meta/index.parquet")' in card
    only = [part for part in parts if part.name == "index-only"]
    alone = yaml.safe_load(dataset_card(only, [], "lab/made", None, "").split("---\n")[1])["configs"]
    assert alone[0]["data_files"][0]["path"] == "index-only/_meta/index.parquet"


@pytest.mark.slow
@pytest.mark.usefixtures("made_pairs", "made_text_pairs", "made_triplets", "made_templates")
def test_previews_show_the_images_of_every_kind(made: MadeDataset, tmp_path: Path) -> None:
    shown = []
    for part in parts_of(made):
        stored = {one.key: one for one in read_samples(made.store, part.name)}
        assert write_preview(made.store, part, tmp_path / "to") is bool(stored)
        for path in (tmp_path / "to/preview" / part.name).rglob("*.parquet"):
            shown.append(part.makes)
            rows = datasets.Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache" / part.name))
            assert {row["key"] for row in rows} == stored.keys()
            for row in rows:
                one = stored[row["key"]]
                assert {name: row[name] for name in one.texts} == one.texts
                assert all(row[role].format == "JPEG" for role in one.images)
                assert row["licence"] == one.json.licence and row["credit"] == one.json.credit
    assert {*shown} == {"pair", "text-pair", "triplet", "template"}


EDITED = [
    f"---\n{{{text}}}\n---\n"
    for text in ("tags: ", "language: en", "configs: [{config_name: a}]", 'configs: [{data_files: "test/*.tar"}]')
]


@pytest.mark.parametrize("card", ["", "no metadata", "---\n- a list\n---\n", "---\n{a: [\n---\n", None, *EDITED])
def test_a_card_without_metadata_is_named(made_text_pairs: MadeDataset, card: str | None) -> None:
    path = Path(made_text_pairs.root) / "text/README.md"
    if card is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(card)
    with pytest.raises(WrongUse, match=r"text/README.md: no card with metadata .* build again"):
        part_of(made_text_pairs.store, "text")
