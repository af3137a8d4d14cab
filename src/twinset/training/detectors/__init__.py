"""Trains BiVLC's detectors of natural and synthetic captions and images on the features of a frozen encoder."""
