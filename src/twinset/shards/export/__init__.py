"""Exports of a finished dataset to other tools' formats."""
