"""Reads tables of scores as they lie on disk: our own Parquet, anyone's Parquet or CSV, released outcome files."""
