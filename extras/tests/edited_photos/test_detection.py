"""Open-vocabulary detectors: tiny random OWLv2 and Grounding DINO in their real layout, as transformers has them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    CLIPTokenizer,
    GroundingDinoConfig,
    GroundingDinoForObjectDetection,
    GroundingDinoImageProcessor,
    GroundingDinoProcessor,
    Owlv2Config,
    Owlv2ForObjectDetection,
    Owlv2ImageProcessor,
    Owlv2Processor,
    SwinConfig,
)

from tests.models.visual_questions.tiny_models import save_blip, save_words
from twinset.contracts.errors import WrongUse
from twinset.models.files import ModelMissing
from twinset_extras.edited_photos.detection import Detector, _overlap

PIXELS = np.random.default_rng(0).integers(0, 256, (48, 80, 3), dtype=np.uint8)
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}


def save_owl(folder: Path) -> None:
    folder.mkdir()
    letters = [chr(code) for code in range(97, 123)]
    tokens = [*letters, *(f"{one}</w>" for one in letters), "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: n for n, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    text = {**SMALL, "vocab_size": 54, "max_position_embeddings": 32, "bos_token_id": 52, "eos_token_id": 53}
    config = Owlv2Config(
        text_config=text, vision_config={**SMALL, "image_size": 64, "patch_size": 16}, projection_dim=32
    )
    Owlv2ForObjectDetection(config).save_pretrained(folder)
    images = Owlv2ImageProcessor(size={"height": 64, "width": 64})
    Owlv2Processor(images, CLIPTokenizer.from_pretrained(folder)).save_pretrained(folder)


def save_dino(folder: Path) -> None:
    words = save_words(folder)
    config = GroundingDinoConfig(
        text_config={**SMALL, "model_type": "bert", "vocab_size": len(words), "max_position_embeddings": 64},
        backbone_config=SwinConfig(
            image_size=32, embed_dim=16, depths=[1] * 4, num_heads=[1, 1, 2, 2], window_size=2,
            out_features=["stage2", "stage3", "stage4"],
        ),
        d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, num_queries=12, max_text_len=64,
    )  # fmt: skip
    GroundingDinoForObjectDetection(config).save_pretrained(folder)
    images = GroundingDinoImageProcessor(size={"shortest_edge": 64, "longest_edge": 96})
    GroundingDinoProcessor(images, words).save_pretrained(folder)


@pytest.mark.parametrize("save", [save_owl, save_dino])
def test_boxes_are_those_of_transformers(tmp_path: Path, save: object) -> None:
    torch.manual_seed(0)
    assert callable(save)
    save(tmp_path / "model")
    settings = Detector(model=str(tmp_path / "model"), threshold=0.001)
    detector = settings.open()
    boxes = detector.boxes(PIXELS, "dog")
    assert boxes and boxes == detector.boxes(PIXELS, "dog") and detector.weights().keys() == {"detector"}
    for left, top, width, height in boxes:
        assert left >= 0 and top >= 0 and left + width <= 80.01 and top + height <= 48.01
    kind, processor, model, _ = detector.loaded
    text = "a dog." if kind == "grounding-dino" else "a photo of a dog"
    given = processor(text=[text], images=PIXELS, return_tensors="pt")
    with torch.no_grad():
        out = model(**given)
    side = (48, 80) if kind == "grounding-dino" else (80, 80)  # OWLv2's boxes are of the square that it pads to
    ids = {"input_ids": given["input_ids"]} if kind == "grounding-dino" else {}
    (found,) = processor.post_process_grounded_object_detection(out, **ids, threshold=0.001, target_sizes=[side])
    clipped = np.clip(found["boxes"].numpy(), 0, [80, 48] * 2)
    for left, top, width, height in boxes:
        assert np.abs(clipped - [left, top, left + width, top + height]).max(axis=1).min() < 0.05
    if kind == "owlv2":  # the other one is sure of what it finds at random
        assert settings.model_copy(update={"threshold": 0.999}).open().boxes(PIXELS, "dog") == []


def test_two_boxes_of_one_object_overlap() -> None:
    assert _overlap((0, 0, 10, 10), (0, 0, 10, 10)) == 1 and _overlap((0, 0, 1, 1), (2, 2, 3, 3)) == 0
    assert _overlap((0, 0, 10, 10), (5, 0, 15, 10)) == pytest.approx(1 / 3)


def test_other_models_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="is a model of type 'blip'"):
        Detector(model=str(save_blip(tmp_path / "blip"))).files()
    save_owl(tmp_path / "owl")
    weights = tmp_path / "owl" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(WrongUse, match="cannot be loaded"):
        Detector(model=str(tmp_path / "owl")).open().boxes(PIXELS, "dog")
