"""Tests claims of the papers at small scale: arms that are trained from one base, and what their scores decide."""
