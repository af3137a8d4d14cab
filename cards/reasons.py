"""What the reasons in cards mean, in one line each: why a candidate was rejected, or never planned."""

from __future__ import annotations

from collections.abc import Iterable

MEANINGS = {
    # Rejected when they were made.
    "missing-media": "the video, frame, image or asset that it is made from is not where it should be",
    "broken-media": "its file cannot be read, or is cut off before the frame",
    "beyond-end": "the video ends before the annotated moment",
    "same-frame": "both moments mean one and the same frame",
    "same-image": "two of its images are one file, or copies of it",
    "unsafe-path": "the name of its media leads out of the media folder",
    "too-large": "a side of the frame is longer than image files hold",
    "box-outside": "of an object's box nothing lies in its image",
    # Rejected when they were rendered, each after its last try.
    "no-room": "so many things found no place beside each other",
    "never-still": "what was dropped on another thing was still moving after three seconds",
    "not-on-top": "what was dropped on another thing does not rest on it",
    "wrong-relation": "as the viewer sees it, the relation does not hold, or another one does as well",
    "wrong-count": "there are more or fewer things than are said",
    "hidden": "too little of a thing is seen",
    "foot-hidden": "what stands behind shows too little of its foot, and seems to stand on what is before it",
    "cut-off": "the border of the picture cuts a thing",
    "too-small": "a thing takes too little of the picture",
    "change-not-seen": "the changed thing looks alike in both pictures",
    "differs-elsewhere": "what did not change differs too, by shadow or light of the changed thing",
    # Rejected when they were drawn by a network.
    "caption-unfit": "the text-to-image model cannot read a caption: too many words, or two tokenizers at odds on it",
    "not-finite": "numbers of the network overflowed, and a picture has none",
    "identical": "not one pixel of the two pictures differs",
    # Rejected by a filter, or blank as it was drawn.
    "blank": "a frame is black, white or of one colour",
    "duplicate": "another sample has the same images and captions; that with the smallest subset and key stays",
    "equal-captions": "no caption of one image differs from those of the other",
    "face": "a frame shows a human face",
    "motion-word": "every caption of an image has a word of motion, which a still frame cannot show",
    "near-identical": "the two frames hardly differ",
    "scene-cut": "the two frames come from different scenes",
    # Never planned: Action Genome.
    "frame-name": "frames that are not named VIDEO/NUMBER.png",
    "repeated-frame": "frames annotated again; the first annotation counts",
    "repeated-object": "objects annotated again in a frame; the first annotation counts",
    "unknown-relation": "names of relations that are not Action Genome's; they are never said",
    "pair-said-alike": "pairs of frames whose captions hold of both",
    # GEBC and YouCook2; the first of all three.
    "pair-unsayable": "pairs in which one side has nothing to say in words: flags, `unsure`, no relation",
    "pair-without-interval": "pairs without time after the second boundary, or between the twins",
    "boundary-malformed": "boundaries that are not objects",
    "boundary-without-time": "boundaries whose timestamp is no time in a video",
    "boundary-repeated": "boundaries with an id that came before in their video; the first counts",
    "segment-malformed": "segments that are not objects with an id",
    "segment-without-time": "segments that are not two times in order",
    "segment-unsayable": "segments whose sentence has no words",
    "segment-repeated": "segments with an id that came before in their video; the first counts",
    # GeneCIS's triplets.
    "no-triplet": "draws of which no try gave a triplet that the rules let pass",
    # EQ-Kubric.
    "name-unmapped": "names of the vocabulary for which the asset source has nothing",
    "name-unpaired": "names that are left without another one to differ from",
    # GeneCIS's templates.
    "instance-malformed": "instances that are not objects with ids, a name and two lists of attributes",
    "instance-repeated": "instances with an id that came before; the first counts",
    "instance-without-box": "instances whose box is no four numbers, has no area or cannot lie in a picture",
    "attribute-unknown": "attributes of instances that the taxonomy does not have",
    "attribute-contradicted": "attributes both said and denied of one instance; neither is believed",
    "reference-few-categories": "images of less than ten categories, which cannot be a reference",
    "reference-without-gallery": "references for which no target, or too few distractors, were found",
}


def glossary(reasons: Iterable[str]) -> str:
    """A Markdown list of what those reasons mean that are known here, in order; empty where none is."""
    return "".join(f"* `{reason}`: {MEANINGS[reason]}\n" for reason in sorted(set(reasons)) if reason in MEANINGS)
