"""Tiny copies of every released layout in its real file formats, and what is read of them. ``word``: of a caption."""

import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import Matching, Picture, Query


@dataclass(frozen=True)
class Case:
    """A tiny copy of a benchmark's layout. subsets: examples by subset, in order. left_out: records by reason.

    write: into a folder, with a word of a caption. images: lie ``below`` in any folders, or in ``named`` ones;
    or they are their ``own`` annotation, or lie ``inside`` it. targets: whether those of queries are known.
    """

    write: Callable[..., None]
    subsets: Mapping[str, int]
    left_out: Mapping[str, int] = field(default_factory=dict)
    images: Literal["below", "named", "own", "inside"] = "below"
    targets: bool = True


def picture(number: int, format: str = "JPEG") -> bytes:
    """A picture whose first pixel tells its number in every format: red."""
    stream = io.BytesIO()
    Image.new("RGB", (24, 16), (10 * number % 256, 100, 30)).save(stream, format, quality=95)
    return stream.getvalue()


def put(path: Path, content: bytes | str | object) -> Path:
    """Write a file, of anything but bytes and text as JSON, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def parquet(path: Path, rows: list[dict[str, Any]], images: tuple[str, ...], row_group_size: int = 40) -> None:
    """As `datasets` writes it: images are structs of bytes and path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    struct = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    types = {name: struct if name in images else (pa.int32() if name == "id" else pa.string()) for name in rows[0]}
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(types.items()))), path, row_group_size=row_group_size)


def pixels(shown: Picture | None) -> Any:
    """Its RGB, (height, width, 3)."""
    assert shown is not None
    return np.asarray(Image.open(io.BytesIO(shown.read())).convert("RGB"))


def matchings(benchmark: Reader) -> list[Matching]:
    """What is asked, without what is left out."""
    return [item for item in benchmark.examples() if isinstance(item, Matching)]


def queries(benchmark: Reader) -> list[Query]:
    """As `matchings`."""
    return [item for item in benchmark.examples() if isinstance(item, Query)]


def pictures(folder: Path, names: Iterable[str]) -> None:
    """A picture of each name, in order."""
    for number, name in enumerate(names):
        put(folder / name, picture(number, "PNG" if name.endswith("png") else "JPEG"))


def sugarcrepe(root: Path, word: str = "red") -> None:
    for kind in ("swap_obj", "add_att"):
        records = {
            str(n): {"filename": f"{n % 2:012d}.jpg", "caption": f"a {word} cup {n}", "negative_caption": f"no cup {n}"}
            for n in range(3)
        }
        put(root / f"{kind}.json", records)
    pictures(root / "val2017", [f"{number:012d}.jpg" for number in range(2)])


def valse(root: Path, word: str = "red") -> None:
    def record(image: str, votes: int) -> dict[str, Any]:
        return {
            "image_file": image, "caption": f"There are {word} cars.", "foil": "There are no cars.",
            "mturk": {"caption": votes, "foil": 3 - votes, "other": 0},
        }  # fmt: skip

    put(root / "data" / "existence.json", {"a_1": record("v7w_1.jpg", 3), "a_2": record("v7w_2.jpg", 1)})
    validated = {"a_1": record("COCO_val2014_000000000007.jpg", 2), "a_3": record("v7w_1.jpg", 2)}
    put(root / "data" / "foil-it.json", validated)
    put(root / "images" / "v7w_1.jpg", picture(1))
    put(root / "coco" / "000000000007.jpg", picture(7))


def aro(root: Path, word: str = "red") -> None:
    box: dict[str, Any] = {"bbox_x": 2, "bbox_y": 3, "bbox_w": 12, "bbox_h": 9}
    right, wrong = f"the {word} cup and the open door", f"the open cup and the {word} door"
    captions = {"true_caption": right, "false_caption": wrong}
    rows = [{"image_path": f"{n}.jpg", **box, **captions, "attributes": [word, "open"]} for n in range(2)]
    put(root / "visual_genome_attribution.json", rows)
    put(root / "visual_genome_relation.json", [{"image_path": "0.jpg", **box, **captions, "relation_name": "on"}])
    pictures(root / "images", ["0.jpg", "1.jpg"])


def aro_order(root: Path, word: str = "red") -> None:
    names = [f"val2014/COCO_val2014_{n:012d}.jpg" for n in range(2)]
    options = [[f"a {word} cup {n}", "cup a", "a", "b", "c"] for n in range(2)]
    rows = [{"image": name, "caption_options": captions} for name, captions in zip(names, options, strict=True)]
    put(root / "coco_order.json", rows)
    pictures(root, names)


def winoground(root: Path, word: str = "red") -> None:
    lines = [
        {
            "id": n, "image_0": f"ex_{n}_img_0", "image_1": f"ex_{n}_img_1", "tag": "Noun", "collapsed_tag": "Object",
            "caption_0": f"a {word} cup on a table", "caption_1": f"a {word} table on a cup",
        }
        for n in range(3)
    ]  # fmt: skip
    put(root / "examples.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    pictures(root / "images", [f"ex_{number // 2}_img_{number % 2}.png" for number in range(6)])


def bivlc_rows(count: int, word: str = "red") -> list[dict[str, Any]]:
    return [
        {
            "image": {"bytes": picture(n // 2), "path": None}, "caption": f"A {word} cup {n}.",
            "negative_caption": f"A blue cup {n}.", "negative_image": {"bytes": picture(100 + n), "path": None},
            "type": "replace", "subtype": "att",
        }
        for n in range(count)
    ]  # fmt: skip


def bivlc(root: Path, word: str = "red") -> None:
    rows = bivlc_rows(4, word)
    for part in range(2):
        name = f"test-{part:05d}-of-00002-23fe2e02660e9182.parquet"
        parquet(root / "data" / name, rows[2 * part : 2 * part + 2], ("image", "negative_image"))


def genecis(root: Path, word: str = "red") -> None:
    def scene(number: int) -> dict[str, Any]:
        return {"val_image_id": number}

    def thing(number: int) -> dict[str, Any]:
        return {"image_id": number, "instance_id": str(number), "instance_bbox": [4.0, 4.0, 5.0, 4.0]}

    for task, entry in (("change_object", scene), ("focus_attribute", thing)):
        templates = [
            {
                "condition": f"{word} wall", "reference": entry(0), "target": entry(2 + n),
                "gallery": [entry(number) for number in range(1, 6) if number != 2 + n],
            }
            for n in range(2)
        ]  # fmt: skip
        put(root / f"{task}.json", templates)
    for number in range(6):
        put(root / "val2017" / f"{number:012d}.jpg", picture(number))
        put(root / "VG_100K" / f"{number}.jpg", picture(20 + number))


def cirr(root: Path, word: str = "red", split: str = "val", images: str = "dev") -> None:
    """Of the training split, ``train``, the images are called so too."""
    names = [f"{images}-{n}-0-img0" for n in range(8)]
    records = [
        {
            "pairid": 12060 + n, "reference": names[n], "target_hard": names[n + 1], "target_soft": {names[n + 1]: 1.0},
            "caption": f"a {word} one", "img_set": {"id": 36, "members": names[:6][::-1]},
        }
        for n in range(3)
    ]  # fmt: skip
    if split.startswith("test"):
        asked = ("pairid", "reference", "caption", "img_set")
        records = [{name: record[name] for name in asked} for record in records]
    put(root / "captions" / f"cap.rc2.{split}.json", records)
    put(root / "image_splits" / f"split.rc2.{split}.json", {name: f"./{images}/{name}.png" for name in names})
    pictures(root / "img_raw" / images, [f"{name}.png" for name in names])


cirr_test = partial(cirr, split="test1", images="test1")


def circo(root: Path, word: str = "red", split: str = "val") -> None:
    """The gallery names one image more than queries do."""
    queries = [
        {
            "reference_img_id": n, "relative_caption": f"is {word}", "shared_concept": "a cup", "id": n,
            "semantic_aspects": ["addition", "negation"][: n + 1],
            **({"target_img_id": n + 1, "gt_img_ids": [n + 1, n + 2]} if split == "val" else {}),
        }
        for n in range(3)
    ]  # fmt: skip
    put(root / "annotations" / f"{split}.json", queries)
    images = [{"id": n, "file_name": f"{n:012d}.jpg"} for n in range(6)]
    put(root / "annotations" / "image_info_unlabeled2017.json", {"images": images})
    pictures(root / "unlabeled2017", [f"{number:012d}.jpg" for number in range(6)])


def mit_states(root: Path, word: str = "ripe") -> None:
    for folder in (f"{word} tomato", "moldy tomato", "sliced tomato", "adj tomato", "ripe pear", "old castle"):
        for number in range(2):
            put(root / "images" / folder / f"{folder.split()[0]}_{number}.jpg", picture(number))


def captioned(root: Path, word: str = "red", *, file: str) -> None:
    """Two images of the test split, with 5 and 6 captions, and one of training that is not there."""
    counts = {"COCO_val2014_000000000391.jpg": 5, "COCO_val2014_000000000522.jpg": 6}
    records = [
        {
            "filename": name, "filepath": "val2014", "split": "test", "imgid": n,
            "sentences": [{"raw": f"a {word} cup {n} {k}", "sentid": 10 * n + k, "tokens": []} for k in range(count)],
        }
        for n, (name, count) in enumerate(counts.items())
    ]  # fmt: skip
    trained = {"filename": "gone.jpg", "split": "train", "imgid": 9, "sentences": []}
    put(root / file, {"images": [trained, *records], "dataset": "coco"})
    pictures(root / "val2014", counts)


flickr30k = partial(captioned, file="dataset_flickr30k.json")
coco = partial(captioned, file="dataset_coco.json")


def eqben(root: Path, word: str = "red") -> None:
    """The original annotation, in Winoground's style, of three subsets; images of the light release."""
    pairs = [
        {
            "image0": f"{folder}/VIDEO{n % 2}/{n:06d}.{suffix}",
            "image1": f"{folder}/VIDEO{n % 2}/{n + 1:06d}.{suffix}",
            "caption0": [f"a {word} cup", "another"] if folder == "eqbenag" else f"a {word} cup", "caption1": "no cup",
        }
        for folder, suffix in (("eqbensd", "png"), ("eqbenag", "png"), ("eqbenyoucook2", "npy"))
        for n in range(3)
    ]  # fmt: skip
    put(root / "ann" / "all_select.json", pairs)
    rows = [{"image": pairs[0]["image0"], "caption": "in a random order"}]
    put(root / "ann" / "ann_json_finegrained_random.json", rows)
    for number, name in enumerate(sorted({pair[side] for pair in pairs for side in ("image0", "image1")})):
        path = root / "image" / name
        if path.suffix == ".npy":
            path.parent.mkdir(parents=True, exist_ok=True)
            rgb = np.asarray(Image.open(io.BytesIO(picture(number, "PNG"))).convert("RGB"))
            np.save(path, rgb[:, :, ::-1])
        else:
            put(path.with_suffix(".jpg"), picture(number))


def film(path: Path, seconds: float, rate: int = 25) -> None:
    """A video whose frame n has the grey 4 n."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        stream.options = {"crf": "1"}
        for number in range(round(seconds * rate)):
            pixels = np.full((32, 32, 3), 4 * number % 256, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, "rgb24")))
        container.mux(stream.encode())


def gebc(root: Path, word: str = "red") -> None:
    def boundary(video: str, number: str, time: float, before: str = "") -> dict[str, Any]:
        return {
            "boundary_id": f"{video}_{number}", "timestamp": time, "prev_timestamp": 0, "next_timestamp": 2.0,
            "label": "Change of Action", "subject": f"person in {word}", "status_before": before or "stands",
            "status_after": "sits down", "caption": "",
        }  # fmt: skip

    videos = {
        "-0-s1eu4sF4": [boundary("-0-s1eu4sF4", "0A", 0.5), boundary("-0-s1eu4sF4", "1A", 1.1, "/0")],
        "SIbQ1aJ8eLM": [boundary("SIbQ1aJ8eLM", "3A", 1.0), boundary("SIbQ1aJ8eLM", "3B", 1.0)],
    }
    put(root / "val.json", videos)
    film(root / "videos" / "-0-s1eu4sF4.mp4", 2)
    film(root / "videos" / "SIbQ1aJ8eLM.mp4", 2)


LAYOUTS: Mapping[str, Callable[..., None]] = {
    **{"sugarcrepe": sugarcrepe, "valse": valse, "winoground": winoground, "bivlc": bivlc, "genecis": genecis},
    **{"cirr": cirr, "mit-states": mit_states, "flickr30k": flickr30k, "coco": coco, "eqben": eqben, "gebc": gebc},
    "aro": aro,
    "aro-order": aro_order,
    "cirr-test": cirr_test,
    "circo": circo,
    "circo-test": partial(circo, split="test"),
}
