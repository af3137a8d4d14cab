"""Networks that answer questions about images, in this process or on a server."""
