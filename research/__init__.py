"""The workshop: experiments with spigot, run from a clone as `python -m research.NAME`; in no wheel."""
