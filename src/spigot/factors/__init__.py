"""What a factor graph is made of: demands on a few of its variables at a time.

A factor names variables by their numbers. Given rows of numbers instead of one, it stands for as many factors of its
kind, so that a thousand of them cost no more to write down, or to read, than one:

    >>> ExactlyOne([0, 1, 2])
    ExactlyOne(1 of 3)
    >>> ExactlyOne([[0, 1, 2], [3, 4]])                 # rows may differ in length; -1 fills up the rows of a tensor
    ExactlyOne(2 of up to 3)
"""

from spigot.factors.counts import AtLeastOne, AtMostOne, ExactlyOne
from spigot.factors.factor import AbstractFactor
from spigot.factors.member import Member
from spigot.factors.outputs import And, Implies, Or, Pair
from spigot.factors.sums import Budget, Knapsack

__all__ = [
    "AbstractFactor",
    "And",
    "AtLeastOne",
    "AtMostOne",
    "Budget",
    "ExactlyOne",
    "Implies",
    "Knapsack",
    "Member",
    "Or",
    "Pair",
]
