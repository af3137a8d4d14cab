"""What training reads: examples by offset from the tars that hold them, in an order that a seed and an epoch decide."""
