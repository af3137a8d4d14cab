"""What is kept: one module a filter, which holds its settings, its reasons and its work."""

KINDS = {
    "blank": "twinset.filters.blank:Blank",
    "directional-similarity": "twinset.filters.directional_similarity:DirectionalSimilarity",
    "drift": "twinset.filters.drift:Drift",
    "equal-captions": "twinset.filters.equal_captions:EqualCaptions",
    "equal-lemmas": "twinset.filters.equal_captions:EqualLemmas",
    "faces": "twinset.filters.faces:Faces",
    "motion-words": "twinset.filters.motion_words:MotionWords",
    "near-identical": "twinset.filters.near_identical:NearIdentical",
    "scene-cut": "twinset.filters.scene_cut:SceneCut",
    "true-of-both": "twinset.filters.true_of_both:TrueOfBoth",
}
