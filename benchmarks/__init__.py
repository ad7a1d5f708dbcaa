"""Speed, side by side with the peers that install: `make bench`, or `python -m benchmarks --help`."""
