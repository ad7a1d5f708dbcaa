"""What is drawn: instances and initial parameters of every task, seed by seed.

Each seed has generators of its own, so that its data do not depend on how many others run beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

import spigot
from research.latent.paths import all_paths, best_paths
from research.latent.settings import Settings
from research.latent.tasks import AbstractTask, Clusters, Instances, Parameters, Valued, scores_along
from spigot import AbstractMarginalStructure, AbstractRankedStructure, AbstractStructure

FEATURES = 8
CLUSTERS, HALF, SEPARATION = 5, 15, 6.0  # of the points: how many, features of each half, distance from the origin


@dataclass(frozen=True)
class Kind:
    """What makes one task of those that are alike.

    Attributes:
        title: What it is, in a few words.
        structure: Makes the structure.
        parts: The shape of one instance's parts.
        members: Lists the members, where the structure cannot.
    """

    title: str
    structure: Callable[[], AbstractStructure]
    parts: tuple[int, ...]
    members: Callable[[], Tensor] | None = None


def _paths() -> AbstractStructure:
    return spigot.Oracle(best_paths, event_ndim=2, batched=True, name="paths")


def _permutations() -> Tensor:  # nobody can count them by sums over scores, but five and five are few
    return torch.stack([torch.eye(5)[list(order)] for order in permutations(range(5))])


KINDS: Mapping[str, Kind] = {
    "chains": Kind("Chains of five positions, three states", lambda: spigot.Chains(3), (5, 4, 3)),
    "trees": Kind("Trees over five words", lambda: spigot.NonProjectiveTrees(), (6, 6)),
    "subsets": Kind("Three of ten", lambda: spigot.Subsets(3), (10,)),
    # An oracle on purpose: the one task in which there is an argmax and nothing else to go by.
    "paths": Kind("Paths through a grid of 5 × 5, an oracle", _paths, (5, 5), lambda: all_paths(5)),
    "matchings": Kind("Matchings of five and five", lambda: spigot.Matchings(), (5, 5), _permutations),
}

TITLES = {"clusters": f"One of {CLUSTERS} clusters"} | {name: kind.title for name, kind in KINDS.items()}
"""What the tasks are called in headings."""


def make_task(name: str, settings: Settings, seeds: Sequence[int]) -> AbstractTask:
    """Draw a task for every seed.

    Example:
        >>> task = make_task("paths", Settings(train=50), seeds=range(2))
        >>> task.train.features.shape, task.train.target.shape, task.members.shape
        (torch.Size([2, 50, 5, 5, 8]), torch.Size([2, 50]), torch.Size([70, 5, 5]))
    """
    counts = (settings.train, settings.test)
    if name == "clusters":
        structure, made = spigot.OneOf(), [_clusters(seed, *counts) for seed in seeds]
        make, members = Clusters, torch.eye(CLUSTERS)
    else:
        kind = KINDS[name]
        structure = kind.structure()
        made = [_valued(structure, kind.parts, seed, *counts) for seed in seeds]
        make, members = Valued, list_members(structure, kind.parts) if kind.members is None else kind.members()
    train, test, start, near = zip(*made, strict=True)
    parameters = _side_by_side(start), _side_by_side(near) if all(near) else None
    return make(name, structure, Instances.stack(train), Instances.stack(test), *parameters, members)


def list_members(structure: AbstractStructure, parts: Sequence[int]) -> Tensor | None:
    """All members of a structure, if it can count and list them.

    Example:
        >>> list_members(spigot.Oracle(best_paths, event_ndim=2, batched=True), (5, 5)) is None
        True
    """
    if not isinstance(structure, AbstractMarginalStructure) or not isinstance(structure, AbstractRankedStructure):
        return None
    zeros = torch.zeros(*parts)
    count = round(float(structure.log_count(structure.full_mask(zeros)).exp()))
    return structure.k_best(zeros, count)[0]


def random_stream(purpose: str, seed: int) -> torch.Generator:
    """A stream of its own for each purpose, so that no weights are drawn from the numbers that made the data."""
    streams = ("data", "parameters", "order")
    return torch.Generator().manual_seed(seed * len(streams) + streams.index(purpose))


_Made: TypeAlias = tuple[Instances, Instances, Parameters, Parameters]


def _valued(structure: AbstractStructure, parts: tuple[int, ...], seed: int, train: int, test: int) -> _Made:
    random = random_stream("data", seed)
    truth = F.normalize(torch.randn(FEATURES, generator=random), dim=0)

    def draw(count: int) -> Instances:
        features = torch.randn(count, *parts, FEATURES, generator=random)
        worth = torch.randn(count, *parts, generator=random)
        z = structure.argmax(scores_along(features, truth))
        return Instances(features, worth, z, (z * worth).flatten(1).sum(1))

    start = F.normalize(torch.randn(FEATURES, generator=random_stream("parameters", seed)), dim=0)
    near = F.normalize(start + truth, dim=0)  # scores have variance one, here and there
    return draw(train), draw(test), {"direction": start}, {"direction": near}


def _clusters(seed: int, train: int, test: int) -> _Made:
    random = random_stream("data", seed)
    centres = SEPARATION * F.normalize(torch.randn(CLUSTERS, HALF, generator=random), dim=-1)
    rules = torch.randn(CLUSTERS, HALF, generator=random)

    def draw(count: int) -> Instances:
        cluster = torch.randint(CLUSTERS, (count,), generator=random)
        place = centres[cluster] + torch.randn(count, HALF, generator=random)
        content = torch.randn(count, HALF, generator=random)
        y = (rules[cluster] * content).sum(-1) > 0
        x = torch.cat([place, content, torch.ones(count, 1)], dim=-1)  # the last is for the biases
        z = F.one_hot(cluster, CLUSTERS).float()
        return Instances(x, torch.zeros_like(z), z, y.float())

    size = 2 * HALF
    weights = torch.randn(2, size, CLUSTERS, generator=random_stream("parameters", seed)) / size**0.5
    scorer, classifiers = F.pad(weights, (0, 0, 0, 1))
    return draw(train), draw(test), {"scorer": scorer, "classifiers": classifiers}, {}


def _side_by_side(seeds: Sequence[Parameters]) -> Parameters:
    return {name: torch.stack([seed[name] for seed in seeds]) for name in seeds[0]}
