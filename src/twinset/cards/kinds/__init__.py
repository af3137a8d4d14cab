"""What sheets, cards and metadata say of each kind of samples: one module a kind, found by the kind's name."""
