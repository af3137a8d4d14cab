"""Video files as containers: their packets and indices, without decoding."""
