"""Where files lie, locally or in a bucket, and the tars among them."""
