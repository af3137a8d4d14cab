"""The small world's checker as an engine that answers questions about pictures of the small model."""
