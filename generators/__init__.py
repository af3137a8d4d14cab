"""Where samples come from: one module or package a source, which holds its settings and its generator."""

KINDS = {
    "action-genome": "generators.video.action_genome:ActionGenome",
    "caption-scores": "generators.caption_scores.source:CaptionScores",
    "gebc": "generators.video.gebc:Gebc",
    "generated-pairs": "generators.generated_pairs.source:GeneratedPairs",
    "genecis-attributes": "generators.galleries.source:AttributeTemplates",
    "genecis-objects": "generators.galleries.source:ObjectTemplates",
    "genecis-triplets": "generators.triplets.source:Triplets",
    "image-pairs": "generators.image_pairs:ImagePairs",
    "image-verification": "generators.image_verification.source:ImageVerification",
    "kubric": "generators.kubric_scenes.source:Kubric",
    "negative-captions": "generators.negative_captions.source:NegativeCaptions",
    "negative-images": "generators.negative_images.source:NegativeImages",
    "negative-prompts": "generators.negative_captions.prompts:NegativePrompts",
    "replayed-negatives": "generators.negative_captions.replay:ReplayedNegatives",
    "scene-graphs": "generators.scene_graphs.source:SceneGraphs",
    "selected-negatives": "generators.selection.source:SelectedNegatives",
    "stable-diffusion": "generators.edited_pairs.source:StableDiffusion",
    "text-pairs": "generators.text_pairs.source:TextPairs",
    "youcook2": "generators.video.youcook2:YouCook2",
}
