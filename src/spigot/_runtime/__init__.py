"""The machinery of the layer: operators, kernels and threads, half precision, checks."""
