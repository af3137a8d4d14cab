"""Neural networks as they lie on this machine: their files, their digests, the device and memory that run them."""
