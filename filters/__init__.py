"""What is kept: filters of captions, of pixels, of faces, and by a CLIP model."""

KINDS = {
    "blank": "twinset.filters.pixels:Blank",
    "equal-captions": "twinset.filters.captions:EqualCaptions",
    "faces": "twinset.filters.faces:Faces",
    "motion-words": "twinset.filters.captions:MotionWords",
    "near-identical": "twinset.filters.pixels:NearIdentical",
    "scene-cut": "twinset.filters.pixels:SceneCut",
    "true-of-both": "twinset.filters.clip_scores:TrueOfBoth",
}
