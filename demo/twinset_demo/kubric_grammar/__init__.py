"""The engine ``kubric``: captions of a small grammar, parsed into scenes, rendered, and proved by their masks."""
