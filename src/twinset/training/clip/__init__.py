"""Trains dual encoders of open_clip on twins and other examples, exactly resumable."""
