"""Training: steps, states that can be saved, several processes."""
