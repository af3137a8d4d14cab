"""Checks GeneCIS galleries against the rules of their tasks."""
