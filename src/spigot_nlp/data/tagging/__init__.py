"""Tags and lemmas: what a word is, found from words alone."""
