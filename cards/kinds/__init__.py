"""What sheets and cards say of each kind of sample."""
