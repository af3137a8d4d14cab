"""What multimodal language models answer when they are asked which caption fits an image."""
