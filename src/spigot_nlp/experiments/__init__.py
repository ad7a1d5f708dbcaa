"""Experiments that run on data made up on the spot: nothing to download, seconds to minutes."""
