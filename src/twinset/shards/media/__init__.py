"""The source media that samples are made from: finding and decoding them."""
