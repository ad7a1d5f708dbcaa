"""What is measured. Unless said otherwise: 64 sentences of n/2 to n words, unit normal scores, one thread."""

import warnings
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

import spigot
from benchmarks import peers
from benchmarks.alignments import alignments
from benchmarks.chains import chains
from benchmarks.factors import factors
from benchmarks.matchings import matchings
from benchmarks.parsing import parsing
from benchmarks.pruning import pruning
from benchmarks.raw import raw
from benchmarks.sentiment import sentiment_speed
from benchmarks.serving import serving
from benchmarks.sharing import sharing
from benchmarks.subsets import subsets
from benchmarks.timing import Row, at_most, best, faster, threads, torch_only, within
from benchmarks.training import all_of_training
from benchmarks.tree_verbs import tree_verbs

BATCH = 64


def sentences(n: int, batch: int = BATCH) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, lengths and mask."""
    generator = torch.Generator().manual_seed(n)
    lengths = torch.randint(n // 2, n + 1, (batch,), generator=generator)
    lengths[0] = n
    scores = torch.randn(batch, n + 1, n + 1, generator=generator)
    return scores, lengths, spigot.ProjectiveTrees().mask(lengths)


def value(scores: Tensor, z: Tensor) -> Tensor:
    return torch.where(z > 0, scores, 0.0).sum((-2, -1))


def projective_argmax() -> Iterator[Row]:
    for n in (25, 50, 100):
        scores, lengths, mask = sentences(n)
        for single in (False, True):
            trees = spigot.ProjectiveTrees(single_root=single)
            ours = best(lambda: trees.argmax(scores, mask))
            name = f"Eisner argmax, n={n}, {'single root' if single else 'many roots'}"
            if peers.torch_struct is None:
                yield Row(name, ours)
                continue
            theirs_in = peers.struct_scores(scores)
            found = peers.struct_trees(theirs_in, lengths, single).argmax
            agree = torch.allclose(
                peers.struct_value(theirs_in, found), value(scores, trees.argmax(scores, mask)), atol=1e-3
            )
            theirs = best(lambda: peers.struct_trees(theirs_in, lengths, single).argmax)
            yield faster(
                name, ours, f"torch-struct{'' if agree else ' (other trees)'}", theirs, 80 if n < 100 else None
            )


def nonprojective_argmax() -> Iterator[Row]:
    for n in (50, 100):
        scores, lengths, mask = sentences(n)
        many, single = spigot.NonProjectiveTrees(single_root=False), spigot.NonProjectiveTrees()
        ours = best(lambda: many.argmax(scores, mask))
        if peers.chu_liu_edmonds is None:
            yield Row(f"MST argmax, n={n}, many roots", ours)
        else:
            matrices = [
                np.ascontiguousarray(s[: l + 1, : l + 1].T.double().numpy())
                for s, l in zip(scores, lengths, strict=True)
            ]
            theirs = best(lambda: peers.ufal_trees(matrices))
            want = 3.5 if n == 50 else None
            yield faster(f"MST argmax, n={n}, many roots", ours, "ufal.chu_liu_edmonds", theirs, want)
        one = best(lambda: single.argmax(scores, mask))
        yield at_most(f"MST argmax, n={n}, single root", one, "ours with many roots", ours, 1.5)


def marginals() -> Iterator[Row]:
    for n in (25, 50, 100):
        scores, lengths, mask = sentences(n)
        trees = spigot.ProjectiveTrees(single_root=False)
        leaf, grad = scores.clone().requires_grad_(), torch.randn_like(scores)
        ours = best(lambda: trees.marginals(scores, mask))
        both = best(lambda: (trees.marginals(leaf, mask) * grad).sum().backward())
        names = f"projective marginals, n={n}", f"projective marginals, forward and backward, n={n}"
        if peers.torch_struct is None:
            yield Row(names[0], ours)
            yield Row(names[1], both)
            continue
        theirs_in, theirs_grad = peers.struct_scores(scores), grad[:, 1:, 1:]
        theirs = best(lambda: peers.struct_trees(theirs_in, lengths).marginals)
        yield faster(names[0], ours, "torch-struct", theirs, 35 if n == 50 else None)
        theirs = best(lambda: (peers.struct_trees(theirs_in, lengths).marginals * theirs_grad).sum().backward())
        yield faster(names[1], both, "torch-struct", theirs, 20 if n == 50 else None)
    for n in (50,):
        scores, lengths, mask = sentences(n)
        trees = spigot.NonProjectiveTrees(single_root=False)
        ours = best(lambda: trees.marginals(scores, mask))
        square = torch.randn(BATCH, n, n)
        inverse = best(lambda: torch.linalg.inv(square))
        yield faster(f"matrix-tree marginals, n={n}", ours, "torch.linalg.inv alone", inverse)


def long_sentences() -> Iterator[Row]:
    """Beyond about a hundred words the sums need more than one attempt."""
    trees = spigot.ProjectiveTrees()
    scores = torch.randn(8, 201, 201, generator=torch.Generator().manual_seed(0))
    yield Row("projective marginals, 8 sentences of 200 words", best(lambda: trees.marginals(scores)))


def flat_hulls() -> Iterator[Row]:
    """All arcs nearly equal: hundreds of trees share the mass."""
    scores = 0.01 * torch.randn(8, 201, 201, generator=torch.Generator().manual_seed(0))
    point = scores[:, :51, :51].contiguous()
    for structure in (spigot.ProjectiveTrees(), spigot.NonProjectiveTrees()):
        hull, name = spigot.ConvexHull(structure), f"hull of {type(structure).__name__} at a flat point (x0.01)"
        yield within(f"{name}, n=50, a sentence", best(lambda: hull.project(point), least=1) / len(point), 75.0)
        supported = best(lambda: hull.solve(point), least=1) / len(point)
        yield Row(f"{name}, n=50, a sentence, with its trees", supported)
    whole = best(lambda: hull.project(scores), least=1) / len(scores)
    yield within(f"{name}, n=200, a sentence", whole, 300.0)


def projections() -> Iterator[Row]:
    point = torch.randn(64, 50, 50, generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(point, dtype=torch.bool)
    ours = best(lambda: spigot.Simplex().project(point, mask))
    softmax = best(lambda: torch.softmax(point, -1))
    yield at_most("simplex projection, 64x50x50", ours, "torch.softmax", softmax, 1.25)
    if peers.sparsemax is not None:
        yield faster("simplex projection, 64x50x50", ours, "entmax.sparsemax", best(lambda: peers.sparsemax(point, -1)))
    heads = best(lambda: spigot.HeadSimplex().project(point, mask))
    softmax = best(lambda: torch.softmax(point, -2))
    yield Row("head projection, 64x50x50", heads, "torch.softmax over heads", softmax, ratio=heads / softmax)


def hulls() -> Iterator[Row]:
    for n, want in ((25, 1.0), (50, 10.0), (100, None)):
        scores, _, mask = sentences(n, batch=32)
        for structure in (spigot.ProjectiveTrees(), spigot.NonProjectiveTrees()):
            z = structure.argmax(scores, mask)
            point = z - torch.randn(z.shape, generator=torch.Generator().manual_seed(1))
            hull = spigot.ConvexHull(structure)
            ours = best(lambda: hull.project(point, mask, start=z), seconds=1.0) / len(z)
            name = f"hull of {type(structure).__name__}, n={n}, a sentence"
            yield Row(name, ours) if want is None else within(name, ours, want)


def layer() -> Iterator[Row]:
    scores, _, mask = sentences(25, batch=32)
    leaf, grad, trees = scores.requires_grad_(), torch.randn_like(scores), spigot.ProjectiveTrees()

    def step() -> None:
        (spigot.argmax(leaf, trees, spigot.Spigot(), mask=mask) * grad).sum().backward()

    yield within("whole layer, forward and SPIGOT backward, n=25, batch 32", best(step), 1.0)


def graphs() -> Iterator[Row]:
    structure = spigot.SemanticGraphs(40, deterministic=(0, 1, 2))
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(32, 26, 26, 41, generator=generator) - 1
    mask = structure.mask(torch.randint(12, 26, (32,), generator=generator), 26)
    yield Row("semantic graphs argmax, n=25, batch 32, 40 labels", best(lambda: structure.argmax(scores, mask)))
    yield Row("arc-label projection, the same", best(lambda: spigot.ArcLabel().project(scores, mask)))


def second_thread() -> Iterator[Row]:
    for n in (50, 100):
        scores, _, mask = sentences(n)
        projective, free = spigot.ProjectiveTrees(), spigot.NonProjectiveTrees()
        z = projective.argmax(scores, mask)
        point, hull = z - torch.randn_like(z), spigot.ConvexHull(projective)
        cases = {
            f"Eisner argmax, n={n}": lambda: projective.argmax(scores, mask),
            f"MST argmax, n={n}": lambda: free.argmax(scores, mask),
            f"projective marginals, n={n}": lambda: projective.marginals(scores, mask),
            f"hull projection, n={n}": lambda: hull.project(point, mask, start=z),
        }
        for name, case in cases.items():
            one = best(case)
            with threads(2):
                two = best(case)
            yield faster(f"{name}, two threads", two, "one thread", one, 1.6)


def reference() -> Iterator[Row]:
    scores, _, mask = sentences(25)
    point = torch.randn_like(scores)
    cases = {
        "Eisner argmax": lambda: spigot.ProjectiveTrees().argmax(scores, mask),
        "MST argmax": lambda: spigot.NonProjectiveTrees().argmax(scores, mask),
        "projective marginals": lambda: spigot.ProjectiveTrees().marginals(scores, mask),
        "matrix-tree marginals": lambda: spigot.NonProjectiveTrees().marginals(scores, mask),
        "head projection": lambda: spigot.HeadSimplex().project(point, mask),
        "hull of ProjectiveTrees": lambda: spigot.ConvexHull(spigot.ProjectiveTrees()).project(point[:8], mask[:8]),
    }
    for name, case in cases.items():
        native = best(case)
        with torch_only():
            plain = best(case, least=1)
        yield faster(f"{name}, n=25", native, "our torch reference", plain)


CASES = {
    "projective": projective_argmax,
    "nonprojective": nonprojective_argmax,
    "marginals": marginals,
    "long": long_sentences,
    "projections": projections,
    "hulls": hulls,
    "flat": flat_hulls,
    "subsets": subsets,
    "layer": layer,
    "graphs": graphs,
    "chains": chains,
    "factors": factors,
    "pruning": pruning,
    "matchings": matchings,
    "alignments": alignments,
    "threads": second_thread,
    "reference": reference,
    "tree-verbs": tree_verbs,
    "training": all_of_training,
    "parsing": parsing,
    "sentiment": sentiment_speed,
    "sharing": sharing,
    "raw": raw,
    "serving": serving,
}

warnings.filterwarnings("ignore", module="torch_struct")
