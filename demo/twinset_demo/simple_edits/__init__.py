"""An editor without a network: recolours and removes inside a mask."""
