"""Face detectors."""
