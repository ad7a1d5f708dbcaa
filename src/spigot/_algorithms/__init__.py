"""Pure functions on tensors: each file holds the torch reference and the dispatch to the native kernel."""
