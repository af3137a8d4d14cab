"""Making one shard: what is written for its candidates, and the receipt that ends it."""
