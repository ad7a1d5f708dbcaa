"""Text as people write it: cut into sentences and words, in the manner of a corpus."""
