"""What a training run says of itself: TensorBoard's curves, a page, and a model card that leads back to every shard."""
