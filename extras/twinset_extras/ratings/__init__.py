"""What people say of generated images, and how far the scores of a check go with it."""
