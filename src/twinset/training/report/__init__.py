"""What a training run says of itself: a page, and a model card that leads back to every shard."""
