"""Dual encoders and matching networks: opened from files of this machine, behind small protocols."""
