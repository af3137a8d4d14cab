"""What every training run shares: its loop, history, identity, processes and checkpoints."""
