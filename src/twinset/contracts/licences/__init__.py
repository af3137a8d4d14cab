"""Licences and credits of samples."""
