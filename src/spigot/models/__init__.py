"""The parsers, and how one stands inside the other."""
