"""Every structure, one by one, written from the definitions and from nothing else.

A mask names the parts that exist in one instance. The functions here list all members of a structure under it as a
tensor `(count, *parts)` of zeros and ones, so that maxima, sums and convex hulls can be taken over the list. They are
meant for five words at most; beyond that the closed-form counts at the end take over.
"""

import functools
import itertools
import math
from collections.abc import Iterator

import torch
from torch import Tensor


def choices(mask: Tensor) -> Tensor:
    """One of the entries that exist; the zero vector alone if none does."""
    if not mask.any():
        return torch.zeros(1, *mask.shape, dtype=torch.float64)
    return torch.eye(mask.shape[-1], dtype=torch.float64)[mask]


def trees(mask: Tensor, *, projective: bool, single_root: bool) -> Tensor:
    """All dependency trees whose arcs `[head, modifier]` the mask allows.

    A position exists if its row or its column has any True. Every existing word takes one head so that following
    heads leads to the root, position 0; with `single_root` exactly one word hangs from it; a projective tree has no
    two crossing arcs.
    """
    return _trees(mask.numpy().tobytes(), mask.shape[-1], projective, single_root)


@functools.lru_cache(maxsize=4096)
def _trees(mask: bytes, n: int, projective: bool, single_root: bool) -> Tensor:
    allowed = torch.frombuffer(bytearray(mask), dtype=torch.bool).reshape(n, n).tolist()
    words = [j for j in range(1, n) if any(allowed[j]) or any(row[j] for row in allowed)]
    heads = [[i for i in range(n) if i != j and allowed[i][j]] for j in words]
    found = []
    for chosen in itertools.product(*heads):
        head = dict(zip(words, chosen, strict=True))
        if (
            all(_reaches_root(head, j) for j in words)
            and (not single_root or not words or chosen.count(0) == 1)
            and (not projective or not crossings(head))
        ):
            found.append(head)
    z = torch.zeros(len(found), n, n, dtype=torch.float64)
    for row, head in enumerate(found):
        for j, i in head.items():
            z[row, i, j] = 1
    return z


def labelled_trees(mask: Tensor, *, projective: bool, single_root: bool) -> Tensor:
    """All dependency trees with one label on each arc, over `(n, n, labels)` indexed `[head, modifier, label]`."""
    found = []
    for tree in trees(mask.any(-1), projective=projective, single_root=single_root):
        arcs = [(int(i), int(j)) for i, j in tree.nonzero()]
        for labels in itertools.product(*([l for l in range(mask.shape[-1]) if mask[i, j, l]] for i, j in arcs)):
            z = torch.zeros(mask.shape, dtype=torch.float64)
            for (i, j), label in zip(arcs, labels, strict=True):
                z[i, j, label] = 1
            found.append(z)
    return torch.stack(found) if found else torch.zeros(0, *mask.shape, dtype=torch.float64)


def _reaches_root(head: dict[int, int], j: int) -> bool:
    for _ in range(len(head) + 1):
        if j == 0:
            return True
        if j not in head:
            return False
        j = head[j]
    return False


def crossings(head: dict[int, int]) -> list[tuple[int, int]]:
    """Pairs of modifiers whose arcs cross: exactly one end of the one lies strictly inside the other."""
    spans = {j: (min(i, j), max(i, j)) for j, i in head.items()}
    return [
        (a, b)
        for a, b in itertools.combinations(spans, 2)
        for (left, right), (start, end) in [sorted((spans[a], spans[b]))]
        if left < start < right < end
    ]


def graphs(mask: Tensor, deterministic: tuple[int, ...] = ()) -> Tensor:
    """All semantic graphs over parts `(n, n, 1 + labels)`.

    Channel 0 holds the arcs, and predicate i at `[i, i, 0]`; channels 1.. hold the labelled arcs. An arc needs its
    predicate, carries exactly one label, and no predicate uses a deterministic role twice. The root is no argument.
    """
    options = [list(_frames(mask, i, deterministic)) for i in range(mask.shape[0])]
    lists = [torch.stack(frames) for frames in options]
    z = torch.zeros(1, 0, *mask.shape[1:], dtype=torch.float64)
    for frames in lists:
        left = z.repeat_interleave(len(frames), 0)
        right = frames.repeat(len(z), 1, 1).unsqueeze(1)
        z = torch.cat([left, right], 1)
    return z


def _frames(mask: Tensor, i: int, deterministic: tuple[int, ...]) -> Iterator[Tensor]:
    """What one predicate can do: be off, or be on with any arguments. Each as its row `(n, 1 + labels)`."""
    n, channels = mask.shape[1:]
    yield torch.zeros(n, channels, dtype=torch.float64)
    if not mask[i, i, 0]:
        return
    arguments = [j for j in range(1, n) if j != i]
    roles = [[None, *(l for l in range(channels - 1) if mask[i, j, 0] and mask[i, j, 1 + l])] for j in arguments]
    for chosen in itertools.product(*roles):
        if any(chosen.count(role) > 1 for role in deterministic):
            continue
        row = torch.zeros(n, channels, dtype=torch.float64)
        row[i, 0] = 1
        for j, role in zip(arguments, chosen, strict=True):
            if role is not None:
                row[j, 0] = row[j, 1 + role] = 1
        yield row


def chains(mask: Tensor) -> Tensor:
    """All chains over parts `(n, 1 + k, k)`: row 0 the states of a position, row 1 + i transitions into it from i.

    One state for each position up to the last that has any, and between neighbours the transition from one to the next.
    """
    n = max([t + 1 for t in range(mask.shape[0]) if mask[t, 0].any()], default=0)
    options = [mask[t, 0].nonzero().flatten().tolist() for t in range(n)]
    found = [
        states
        for states in itertools.product(*options)
        if all(mask[t, 1 + states[t - 1], states[t]] for t in range(1, n))
    ]
    z = torch.zeros(len(found), *mask.shape, dtype=torch.float64)
    for row, states in enumerate(found):
        for t, state in enumerate(states):
            z[row, t, 0, state] = 1
            if t:
                z[row, t, 1 + states[t - 1], state] = 1
    return z


def matchings(mask: Tensor, *, complete: bool) -> Tensor:
    """All sets of parts `[row, column]` that use each row and each column at most once.

    With `complete`, only those that leave none of the shorter side alone; a row or a column exists if it has a part.
    """
    return _matchings(mask.contiguous().numpy().tobytes(), mask.shape[0], mask.shape[1], complete)


@functools.lru_cache(maxsize=4096)
def _matchings(parts: bytes, n: int, m: int, complete: bool) -> Tensor:
    mask = torch.frombuffer(bytearray(parts), dtype=torch.bool).reshape(n, m)
    found = [torch.zeros(n, m, dtype=torch.float64)]
    for i in range(n):
        for z in list(found):
            for j in mask[i].nonzero().flatten().tolist():
                if not z[:, j].any():
                    longer = z.clone()
                    longer[i, j] = 1
                    found.append(longer)
    size = min(int(mask.any(1).sum()), int(mask.any(0).sum()))
    kept = [z for z in found if not complete or int(z.sum()) == size]
    return torch.stack(kept) if kept else torch.zeros(0, n, m, dtype=torch.float64)


def span_trees(mask: Tensor) -> Tensor:
    """All binary trees over labelled spans `[first, last, label]`: a sentence is halved until words are left.

    Words go up to the last that may have a label.
    """
    allowed = mask.tolist()
    alone = [any(allowed[i][i]) for i in range(len(allowed))]
    words = max((i + 1 for i in range(len(alone)) if alone[i]), default=0)

    def trees(i: int, j: int) -> Iterator[list[tuple[int, int, int]]]:
        halves = [[]] if i == j else [a + b for k in range(i, j) for a in trees(i, k) for b in trees(k + 1, j)]
        for below in halves:
            for l, there in enumerate(allowed[i][j]):
                if there:
                    yield [(i, j, l), *below]

    members = list(trees(0, words - 1)) if words else [[]]
    z = torch.zeros(len(members), *mask.shape, dtype=torch.float64)
    for row, spans in enumerate(members):
        for part in spans:
            z[(row, *part)] = 1
    return z


def alignments(mask: Tensor) -> Tensor:
    """All paths of cells from `[0, 0]` to where the last row and column with a cell meet: down, right or both."""
    allowed = mask.tolist()
    if not mask.any():
        return torch.zeros(1, *mask.shape, dtype=torch.float64)
    last = tuple(int(mask.any(axis).nonzero()[-1, 0]) for axis in (1, 0))

    def paths(i: int, j: int) -> Iterator[list[tuple[int, int]]]:
        if i < 0 or j < 0 or not allowed[i][j]:
            return
        if (i, j) == (0, 0):
            yield [(0, 0)]
        for before in ((i - 1, j), (i, j - 1), (i - 1, j - 1)):
            for path in paths(*before):
                yield [*path, (i, j)]

    members = list(paths(*last))
    z = torch.zeros(len(members), *mask.shape, dtype=torch.float64)
    for row, cells in enumerate(members):
        for i, j in cells:
            z[row, i, j] = 1
    return z


def subsets(mask: Tensor) -> Tensor:
    """All 0/1 tensors inside the mask: the vertices of the box, and the raw material of a definition."""
    z = torch.zeros(2 ** int(mask.sum()), *mask.shape, dtype=torch.float64)
    z[:, mask] = torch.tensor(list(itertools.product([0.0, 1.0], repeat=int(mask.sum()))), dtype=torch.float64)
    return z


def values(vertices: Tensor, scores: Tensor) -> Tensor:
    """The score of each vertex in float64, ignoring whatever sits on parts that no vertex uses."""
    flat = vertices.flatten(1)
    used = flat.any(0)
    return flat[:, used] @ scores.detach().double().flatten()[used]


def log_partition(vertices: Tensor, scores: Tensor) -> Tensor:
    """The logarithm of the sum of exponentiated scores over the list."""
    return values(vertices, scores).logsumexp(0)


def marginals(vertices: Tensor, scores: Tensor) -> Tensor:
    """The mean of the list under probabilities proportional to the exponentiated scores."""
    weights = values(vertices, scores).softmax(0)
    return torch.einsum("v,v...->...", weights, vertices)


def covariance(vertices: Tensor, scores: Tensor, direction: Tensor) -> Tensor:
    """The derivative of the marginals along a direction: cov(z, z . direction)."""
    weights = values(vertices, scores).softmax(0)
    along = values(vertices, direction)
    return torch.einsum("v,v...->...", weights * (along - weights @ along), vertices)


def project(vertices: Tensor, point: Tensor, sweeps: int = 20_000) -> Tensor:
    """Nearest point of the convex hull of the list: Wolfe's algorithm on the differences to the point.

    Keeps a set of affinely independent vertices with positive weights; adds the vertex that descends most, solves
    the affine least squares, and walks back to the boundary whenever a weight would turn negative.
    """
    rows = vertices.flatten(1) - point.flatten()
    active = [int(rows.square().sum(1).argmin())]
    weights = torch.ones(1, dtype=torch.float64)
    for _ in range(sweeps):
        x = weights @ rows[active]
        best = int((rows @ x).argmin())
        if best in active or x @ x - rows[best] @ x <= 1e-13 * (1 + rows.square().sum(1).max()):
            break
        active.append(best)
        weights = torch.cat([weights, weights.new_zeros(1)])
        while True:
            affine = _affine_minimiser(rows[active])
            if (affine > 1e-14).all():
                weights = affine
                break
            falls = affine <= 1e-14
            ratio = (weights / (weights - affine))[falls].min()
            weights = (1 - ratio) * weights + ratio * affine
            keep = weights > 1e-14
            active = [a for a, kept in zip(active, keep.tolist(), strict=True) if kept]
            weights = weights[keep] / weights[keep].sum()
    return (weights @ vertices.flatten(1)[active]).reshape(point.shape)


def _affine_minimiser(rows: Tensor) -> Tensor:
    """Weights summing to one whose combination of the rows is shortest."""
    k = len(rows)
    system = torch.ones(k + 1, k + 1, dtype=torch.float64)
    system[:k, :k] = rows @ rows.T
    system[k, k] = 0
    right = torch.zeros(k + 1, dtype=torch.float64)
    right[k] = 1
    return torch.linalg.lstsq(system, right[:, None], driver="gelsd").solution[:k, 0]


def tree_count(words: int, *, projective: bool, single_root: bool) -> int:
    """How many trees n words and a root have.

    Arborescences are Cayley's: $(n+1)^{n-1}$, and $n \\cdot n^{n-2}$ with one root. Projective trees with many roots
    are counted by $\\binom{3n}{n}/(2n+1)$, with one root by $\\binom{3n-2}{n-1}/n$.
    """
    n = words
    if n == 0:
        return 1
    if projective:
        return math.comb(3 * n - 2, n - 1) // n if single_root else math.comb(3 * n, n) // (2 * n + 1)
    return n ** (n - 1) if single_root else (n + 1) ** (n - 1)


def graph_count(words: int, labels: int) -> int:
    """How many semantic graphs n words have without determinism: each predicate is off, or on with any arguments."""
    root = 1 + (1 + labels) ** words
    return root * (1 + (1 + labels) ** (words - 1)) ** words
