"""URLs of others: what fsspec would open, and this project does not."""

import re
from pathlib import Path

import fsspec
import pytest

from twinset.contracts.errors import WrongUse
from twinset.shards.storage.store import Store

CHECKOUT = Path(__file__).resolve().parents[3]
CHAINS = ("reference://::file:///etc", "simplecache::s3://bucket/out", "tar://x::s3://b/a.tar", "s3://b/a::file:///etc")
OTHERS = ("reference", "local", "sftp", "ssh", "ftp", "github", "git", "hf", "hdfs", "jupyter", "cached", "data", "S3")


@pytest.mark.parametrize("url", [*CHAINS, *(f"{scheme}://example.org/out" for scheme in OTHERS)])
def test_a_url_of_another_scheme_or_a_chain_is_not_opened(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """S12: `reference://…::file:///etc/hostname` as OUT, stage or manifest read any local file; sftp and github log in
    with the user's own keys; caches write elsewhere."""
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda *_, **__: pytest.fail("fsspec was asked"))
    with pytest.raises(WrongUse, match=r"not a URL that is opened; name a folder, or one URL that begins with s3://, "):
        Store(url)


def test_one_module_hands_urls_to_fsspec() -> None:
    """A second way to fsspec would not ask for the scheme."""
    folders = [*(CHECKOUT / "src/twinset").glob("*/"), CHECKOUT / "demo", CHECKOUT / "extras/twinset_extras"]
    imports = re.compile(r"^\s*(import|from) (fsspec|s3fs|gcsfs|adlfs|smart_open)\b", re.MULTILINE)
    using = [path for folder in folders for path in folder.rglob("*.py") if imports.search(path.read_text("utf-8"))]
    assert using == [CHECKOUT / "src/twinset/shards/storage/object_store.py"]
