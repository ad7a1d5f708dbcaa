"""Words for what is wrong with a structure, and masks from lengths."""

import torch
from torch import Tensor

from spigot._algorithms.arc_mask import existing_words, tree_arcs
from spigot._algorithms.kernel_calls import flatten
from spigot.types import Mask, Parts


def arc_mask(lengths: Tensor, size: int | None) -> Mask:
    """Arcs `(*batch, n, n)` of sentences of these lengths: no padding, no loops, none into the root."""
    n = padded_size(lengths, size)
    position = torch.arange(n, device=lengths.device)
    inside = position <= lengths.unsqueeze(-1)
    return tree_arcs(inside.unsqueeze(-1) & inside.unsqueeze(-2))


def padded_size(lengths: Tensor, size: int | None) -> int:
    """Positions including the root: the longest sentence and one, or the size asked for."""
    check_lengths(lengths)
    if size is not None and torch.compiler.is_compiling():
        return size  # a compiled graph cannot look at values
    longest = int(lengths.max()) if lengths.numel() else 0
    if size is not None and size <= longest:
        raise ValueError(f"size is {size}, but {longest} words and the root need at least {longest + 1} positions.")
    return longest + 1 if size is None else size


def entry_mask(lengths: Tensor, size: int | None) -> Mask:
    """The first entries of rows of these lengths, `(*batch, size)`."""
    check_lengths(lengths)
    if size is None or not torch.compiler.is_compiling():  # a compiled graph cannot look at values
        longest = int(lengths.max()) if lengths.numel() else 0
        size = longest if size is None else size
        if size < longest:
            raise ValueError(f"size is {size}, but an instance has {longest} choices.")
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1)


def grid_mask(lengths: Tensor, size: int | tuple[int, int] | None, columns: Tensor | None) -> Mask:
    """The pairs `(*batch, n, m)` of so many rows and columns; as many of the one as of the other if not given."""
    across = lengths if columns is None else columns
    check_lengths(lengths)
    check_lengths(across)
    if across.shape != lengths.shape:
        raise ValueError(
            f"lengths has shape {tuple(lengths.shape)} and columns {tuple(across.shape)}; they must be equal."
        )
    sizes = (size, size) if size is None or isinstance(size, int) else tuple(size)
    if len(sizes) != 2:
        raise ValueError(f"size is {size}; it must be one number, or two: rows and columns.")
    down, along = (
        torch.arange(_padded(count, room, name), device=count.device) < count.unsqueeze(-1)
        for count, room, name in ((lengths, sizes[0], "rows"), (across, sizes[1], "columns"))
    )
    return down.unsqueeze(-1) & along.unsqueeze(-2)


def _padded(count: Tensor, size: int | None, what: str) -> int:
    if size is not None and torch.compiler.is_compiling():
        return size  # a compiled graph cannot look at values
    longest = int(count.max()) if count.numel() else 0
    if size is not None and size < longest:
        raise ValueError(f"size is {size}, but an instance has {longest} {what}.")
    return longest if size is None else size


def check_lengths(lengths: Tensor) -> None:
    """Lengths are whole numbers, zero or more."""
    if not isinstance(lengths, Tensor):
        raise TypeError(f"lengths is a {type(lengths).__name__}; it must be a tensor of integers, one an instance.")
    if lengths.dtype.is_floating_point or lengths.dtype == torch.bool:
        raise TypeError(f"lengths has dtype {lengths.dtype}; it must be a tensor of integers.")
    if not torch.compiler.is_compiling() and lengths.numel() and int(lengths.min()) < 0:
        raise ValueError(f"lengths has a negative entry, {int(lengths.min())}; a length is zero or more.")


def tree_violations(z: Parts, mask: Mask, *, single_root: bool, projective: bool) -> list[list[str]]:
    """For each instance, each broken constraint of dependency trees in words."""
    n = z.shape[-1]
    arcs = tree_arcs(mask).reshape(-1, n, n)
    words = existing_words(arcs)
    return [
        _tree_violations(values, exists, [w for w in range(1, n) if is_word[w]], single_root, projective)
        for values, exists, is_word in zip(z.reshape(-1, n, n).tolist(), arcs.tolist(), words.tolist(), strict=True)
    ]


def labelled_violations(z: Parts, mask: Mask, *, single_root: bool, projective: bool) -> list[list[str]]:
    """For each instance, each broken constraint of labelled dependency trees in words."""
    flat, exists = flatten(z, 3), flatten(mask, 3)
    arcs = (flat != 0).any(-1).to(z.dtype)
    rest = tree_violations(arcs, exists.any(-1), single_root=single_root, projective=projective)
    return [_label_violations(*pair) + found for *pair, found in zip(flat, exists, rest, strict=True)]


def _label_violations(z: Parts, exists: Mask) -> list[str]:
    found: list[str] = []
    chosen: dict[tuple[int, int], list[int]] = {}
    for h, m, label in z.nonzero().tolist():
        chosen.setdefault((h, m), []).append(label)
        value = float(z[h, m, label])
        if value != 1:
            found.append(f"arc {h}->{m} with label {label} is {value:g}, not 0 or 1")
        if not exists[h, m, label] and exists[h, m].any():  # an arc without any label is reported as an arc
            found.append(f"label {label} of arc {h}->{m} is not in the mask")
    several = ((arc, labels) for arc, labels in chosen.items() if len(labels) > 1)
    return found + [f"arc {h}->{m} has {len(ls)} labels: {', '.join(map(str, ls))}" for (h, m), ls in several]


def _tree_violations(
    z: list[list[float]], arcs: list[list[bool]], words: list[int], single_root: bool, projective: bool
) -> list[str]:
    n = len(z)
    found = []
    on = [(h, m) for m in range(n) for h in range(n) if z[h][m]]
    found += [f"arc {h}->{m} is {z[h][m]:g}, not 0 or 1" for h, m in on if z[h][m] != 1]
    found += [f"arc {h}->{m} is not in the mask" for h, m in on if not arcs[h][m]]
    heads: dict[int, list[int]] = {m: [] for m in words}
    for h, m in on:
        heads.setdefault(m, []).append(h)
    for m in words:
        if len(heads[m]) != 1:
            names = f" ({', '.join(map(str, heads[m]))})" if heads[m] else ""
            found.append(f"modifier {m} has {len(heads[m])} heads{names}")
    roots = [m for m in words if 0 in heads[m]]
    if single_root and len(roots) > 1:
        found.append(f"{len(roots)} words hang on the root: {', '.join(map(str, roots))}")
    if words and not roots:
        found.append("no word hangs on the root")
    found += _cycles({m: h[0] for m, h in heads.items() if h})
    if projective:
        spans = sorted({(min(arc), max(arc)) for arc in on})
        name = {(min(h, m), max(h, m)): f"{h}->{m}" for h, m in on}
        for i, (a, b) in enumerate(spans):
            found += [f"arcs {name[a, b]} and {name[c, d]} cross" for c, d in spans[i + 1 :] if a < c < b < d]
    return found


def _cycles(head: dict[int, int]) -> list[str]:
    """Each cycle once, as `cycle 3 -> 5 -> 3` in the direction from head to modifier."""
    state: dict[int, int] = {}
    found = []
    for start in sorted(head):
        node, path = start, []
        while node in head and node not in state:
            state[node] = start
            path.append(node)
            node = head[node]
        if node in head and state.get(node) == start and node in path:
            loop = path[path.index(node) :][::-1]
            first = loop.index(min(loop))
            loop = loop[first:] + loop[:first]
            found.append("cycle " + " -> ".join(map(str, [*loop, loop[0]])))
    return found
