"""Golden values: what one commit computes, kept in small files, for later commits to be held to."""
