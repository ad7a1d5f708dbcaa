"""Monotone paths through a grid of cells: the best one, sums over all, draws and the k best.

Natively the recursion runs in C++; elsewhere `alignments_reference.py` does the same in plain torch.
"""

from spigot._algorithms import alignments_reference
from spigot._algorithms.recursions import Recursion

PATHS = Recursion("align", alignments_reference, 2, member="path", parts="cells")
