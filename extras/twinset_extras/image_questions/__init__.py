"""Yes/no questions of a parsed caption: what it names, what it says of that, and how this is asked for."""
