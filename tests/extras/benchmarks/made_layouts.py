"""Tiny copies of released layouts in their real file formats. ``word``: of a caption."""

import json
from pathlib import Path

from tests.evaluation.benchmarks.made_layouts import Case, parquet, picture, pictures, put


def colorswap(root: Path, word: str = "red") -> None:
    for split, first in (("train", 0), ("test", 2)):
        rows = [
            {
                "id": n, "caption_1": f"a {word} cup {n} on a table", "caption_2": f"a cup on a {word} table {n}",
                "image_1": f"images/img_{n}_1.png", "image_2": f"images/img_{n}_2.png", "image_source": "midjourney",
            }
            for n in (first, first + 1)
        ]  # fmt: skip
        put(root / f"{split}.json", rows)
    pictures(root / "images", [f"img_{n}_{side}.png" for n in range(4) for side in (1, 2)])


SOLUTIONS = {
    False: "T0_I0 > T1_I0 & T1_I1 > T0_I1,T0_I0 > T0_I1 & T1_I1 > T1_I0",
    True: "T1_I0 > T0_I0 & T0_I1 > T1_I1,T0_I1 > T0_I0 & T1_I0 > T1_I1",
}


def vismin(root: Path, word: str = "red") -> None:
    """The texts of the second row are the other way round."""
    rows = [
        {
            "image_0": {"bytes": picture(2 * n), "path": None}, "text_0": f"a {word} cup {n}",
            "image_1": {"bytes": picture(2 * n + 1), "path": None}, "text_1": f"a blue cup {n}",
            "category": "attribute",
        }
        for n in range(3)
    ]  # fmt: skip
    parquet(root / "default" / "test" / "0000.parquet", rows, ("image_0", "image_1"))
    answers = [f"{n},{SOLUTIONS[n == 1]},attribute" for n in range(3)]
    put(root / "solutions" / "sim_solution.csv", "\n".join(["idx,Text,Image,category", *answers, ""]))


def cola(root: Path, word: str = "red") -> None:
    place = "https://cs-people.bu.edu/array/data/vg_gqa_images"
    pairs = [
        [f"{place}/{a}.jpg", f"{word} cup {a}", f"{place}/{b}.jpg", f"big cup {b}"] for a, b in ((1, 2), (3, 2), (4, 5))
    ]
    put(root / "data" / "COLA_multiobjects_matching_benchmark.json", pairs)
    pictures(root / "vg", [f"{n}.jpg" for n in range(1, 6)])


def coco_counterfactuals(root: Path, word: str = "red") -> None:
    captions = {"caption_0": f"A {word} cup.", "caption_1": "No."}
    rows = [{"id": f"{n}_0", "image_0": f"{n}_0_0", "image_1": f"{n}_0_1", **captions} for n in range(2)]
    put(root / "data" / "examples.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    pictures(root / "images", [f"{n}_0_{side}.jpg" for n in range(2) for side in (0, 1)])


def mmvp(root: Path, word: str = "red", last: int = 4, column: str = "lndex") -> None:
    rows = [
        f'{n},"Is the cup {word}, or not? {(n - 1) // 2}",(a) {word} (b) Other,({"ab"[(n - 1 + (n > 2)) % 2]})'
        for n in range(1, last + 1)
    ]
    put(root / "Questions.csv", "\n".join([f"{column},Question,Options,Correct Answer", *rows, ""]))
    pictures(root / "MMVP Images", [f"{n}.jpg" for n in range(1, last + 1)])


def mmvp_corrected(root: Path, word: str = "red") -> None:
    mmvp(root, word, 280)
    rows = (root / "Questions.csv").read_text().splitlines()
    for n in (99, 100, 279, 280):
        rows[n] = f"{n},Is it?,(a) Yes (b) No,({'ba'[n % 2]})"
    put(root / "Questions.csv", "\n".join([*rows, ""]))


def mmvp_vlm(root: Path, word: str = "red") -> None:
    rows = [f"{n},Color and Appearance,a {word} cup {n}" for n in range(1, 5)]
    put(root / "Questions.csv", "\n".join(["Question ID,Type,Statement", *rows, ""]))
    pictures(root / "MLLM_VLM Images" / "Color and Appearance", [f"{n}.jpg" for n in range(1, 5)])


def naturalbench(root: Path, word: str = "red") -> None:
    """As the list of single questions."""
    options, letter = "\nOption: A:Cap; B:Helmet;", "Please output the letter corresponding to the correct option."
    groups = [
        (f"What {word} one is worn?{options}{letter}", f"What is there?{options}{letter}", "A", "B", "mcq"),
        (f"Is the cup {word}?Please answer Yes or No.", "Is it 1?Please answer Yes or No.", "Yes", "No", "yes_no"),
    ]
    rows = [
        [question, f"{n}_{image}.jpg", answers[(place + image) % 2], kind]
        for n, (first, second, *answers, kind) in enumerate(groups)
        for place, question in enumerate((first, second))
        for image in (0, 1)
    ]
    put(root / "test_set.json", rows)
    pictures(root / "images", [f"{n}_{image}.jpg" for n in range(2) for image in (0, 1)])


def whatsup(root: Path, word: str = "mug") -> None:
    sides = ("on", "under", "left_of", "right_of")
    captions = [f"A {word} {place} a table" for place in ("on", "under", "to the left of", "to the right of")]
    names = [f"mug_{side}_table.jpeg" for side in sides]
    rows = [
        {
            "image_path": f"data/controlled_images/{name}",
            "caption_options": [captions[n], *captions[:n], *captions[n + 1 :], "A shoe on a chair"],
        }
        for n, name in enumerate(names)
    ]
    put(root / "controlled_images_dataset.json", rows)
    records = [[139, f"A photo of a {word} on the left", f"A photo of a {word} on the right"]]
    put(root / "coco_qa_one_obj.json", records)
    pictures(root / "controlled_images", names)
    put(root / "val2017" / "000000000139.jpg", picture(9))


def sugarcrepe_pp(root: Path, word: str = "red") -> None:
    for kind in ("replace_att", "swap_obj"):
        rows = [
            {
                "id": n, "filename": f"{n:012d}.jpg", "caption": f"a {word} cup", "caption2": f"a cup that is {word}",
                "negative_caption": "a blue cup",
            }
            for n in range(2)
        ]  # fmt: skip
        put(root / "data" / f"{kind}.json", rows)
    pictures(root / "val2017", [f"{n:012d}.jpg" for n in range(2)])


def spec(root: Path, word: str = "red") -> None:
    folder, keys = root / "absolute_size", [f"a {word} cup {n}" for n in range(3)]
    put(folder / "image2text.json", [{"query": f"images/{n}.jpg", "keys": keys, "label": n} for n in range(3)])
    images = [f"images/{n}.jpg" for n in range(3)]
    put(folder / "text2image.json", [{"query": keys[n], "keys": images, "label": n} for n in range(3)])
    pictures(folder / "images", [f"{n}.jpg" for n in range(3)])


def vl_checklist(root: Path, word: str = "red") -> None:
    rows = [[f"VG_100K/{n}.jpg", {"POS": [f"{word} floor"], "NEG": ["big floor"]}] for n in range(2)]
    put(root / "data" / "Attribute" / "vaw" / "size.json", rows)
    put(root / "data" / "Relation" / "action.json", rows[:1])
    pictures(root / "VG_100K", ["0.jpg", "1.jpg"])


def cola_single(root: Path, word: str = "red") -> None:
    """Four images; the third class has no right image, and the hard list of the second lacks the last image."""
    labels = [f"{word} cup", "square plate", "white dog"]
    right, hard = [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0]], [[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 0, 1]]
    flags = zip(right, hard, strict=True)
    rows = [[f"visual_genome/{n}.jpg", {"cup": [word]}, *labelled] for n, labelled in enumerate(flags)]
    put(root / "data" / "COLA_singleobjects_benchmark_GQA.json", {"labels": labels, "data": rows})
    paco = [[row[0], *row[2:]] for row in rows]  # without the objects; as the released script reads it
    put(root / "data" / "COLA_singleobjects_benchmark_PACO.json", [labels, paco])
    pictures(root / "vg", [f"{n}.jpg" for n in range(4)])


def imagenet(root: Path, word: str = "red") -> None:
    for name in (f"{word}_cup", "dog"):
        pictures(root / "val" / name, ["a.JPEG", "b.jpg"])


def vsr(root: Path, word: str = "red") -> None:
    rows = [
        {"image": f"{n:012d}.jpg", "caption": f"The {word} cup is on it.", "label": n % 2, "relation": "on"}
        for n in range(2)
    ]
    put(root / "data" / "splits" / "random" / "test.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    pictures(root / "train2017", [f"{n:012d}.jpg" for n in range(2)])


#: Of the contract of benchmarks, tests/guard/contracts/test_benchmarks.py.
CASES = {
    "vsr": Case(vsr, {"random": 2}),
    "imagenet": Case(imagenet, {"val": 4}, images="own"),
    "colorswap": Case(colorswap, {"train": 2, "test": 2}),
    "vismin": Case(vismin, {"test": 3}, images="inside"),
    "cola": Case(cola, {"multi-objects": 3}),
    "cola-single": Case(cola_single, {"gqa": 2, "paco": 2}, {"no right image": 2}),
    "coco-counterfactuals": Case(coco_counterfactuals, {"test": 2}),
    "mmvp": Case(mmvp, {"test": 2}),
    "mmvp-corrected": Case(mmvp_corrected, {"test": 140}),
    "mmvp-vlm": Case(mmvp_vlm, {"test": 2}),
    "naturalbench": Case(naturalbench, {"test": 2}),
    "whatsup": Case(whatsup, {"a": 4, "coco-one": 1}),
    "sugarcrepe++": Case(sugarcrepe_pp, {"replace_att": 2, "swap_obj": 2}),
    "spec": Case(spec, {"absolute-size-i2t": 3, "absolute-size-t2i": 3}),
    "vl-checklist": Case(vl_checklist, {"attribute-vaw-size": 2, "relation-action": 1}),
}
