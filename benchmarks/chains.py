"""Chains of states: 64 sequences of 50 positions with 20 states, from unary scores and transitions to the answer.

What it takes to bring scores into each library's layout, and the answer out of it, counts in its time.
"""

from collections.abc import Iterator

import torch

import spigot
from benchmarks import peers
from benchmarks.timing import Row, best, faster, torch_only

BATCH, LENGTH, STATES = 64, 50, 20
SIZE = f"{BATCH} x {LENGTH} x {STATES}"


def chains() -> Iterator[Row]:
    """Against libraries with the same answers; where one is missing, our own time alone."""
    generator = torch.Generator().manual_seed(0)
    structure = spigot.Chains(STATES)
    unary = torch.randn(BATCH, LENGTH, STATES, generator=generator)
    transitions = torch.randn(BATCH, LENGTH - 1, STATES, STATES, generator=generator)
    shared = transitions[0, 0].contiguous()
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH,), generator=generator)
    lengths[0] = LENGTH
    mask = structure.mask(lengths)

    def states() -> torch.Tensor:
        return structure.unpack(structure.argmax(structure.pack(unary, shared), mask))[0].argmax(-1)

    def viterbi() -> tuple[torch.Tensor, torch.Tensor]:
        return structure.unpack(structure.argmax(structure.pack(unary, transitions), mask))

    def marginals() -> tuple[torch.Tensor, torch.Tensor]:
        return structure.unpack(structure.marginals(structure.pack(unary, transitions), mask))

    if peers.CRF is None:
        yield Row(f"Viterbi, {SIZE}, shared transitions", best(states))
    else:
        crf = peers.chain_crf(shared)
        inside = torch.arange(LENGTH) < lengths.unsqueeze(-1)
        found = crf.decode(unary, inside)
        assert all(mine[: len(tags)].tolist() == tags for mine, tags in zip(states(), found, strict=True))
        theirs = best(lambda: crf.decode(unary, inside))
        yield faster(f"Viterbi, {SIZE}, shared transitions", best(states), "pytorch-crf", theirs, 3)
    if peers.torch_struct is None:
        yield Row(f"Viterbi, {SIZE}", best(viterbi))
        yield Row(f"chain marginals, {SIZE}", best(marginals))
    else:
        for name, ours, verb, want in (
            ("Viterbi", viterbi, "argmax", 30),
            ("chain marginals", marginals, "marginals", 15),
        ):
            answer = peers.struct_chain(unary, transitions, lengths, verb)
            torch.testing.assert_close(answer, ours()[1], rtol=0, atol=1e-4)
            theirs = best(lambda v=verb: peers.struct_chain(unary, transitions, lengths, v))
            yield faster(f"{name}, {SIZE}", best(ours), "torch-struct", theirs, want)

    packed = structure.pack(unary, transitions)
    leaf, grad = packed.clone().requires_grad_(), torch.randn_like(packed)
    yield Row(f"Viterbi alone, {SIZE}", best(lambda: structure.argmax(packed, mask)))
    yield Row(f"chain marginals alone, {SIZE}", best(lambda: structure.marginals(packed, mask)))
    both = best(lambda: (structure.marginals(leaf, mask) * grad).sum().backward())
    yield Row(f"chain marginals, forward and backward, {SIZE}", both)
    yield Row(f"10 draws each, {SIZE}", best(lambda: structure.sample(packed, mask, 10)))
    yield Row(f"10 best, {SIZE}", best(lambda: structure.k_best(packed, 10, mask)))
    pulled = best(lambda: (spigot.argmax(leaf, structure, mask=mask) * grad).sum().backward())
    yield Row(f"chains, forward and SPIGOT backward, {SIZE}", pulled)
    yield from _hulls(generator)


def _hulls(generator: torch.Generator) -> Iterator[Row]:
    """Projections onto the hull: of z - g, as in SPIGOT's backward pass, and of a flat point, that many share."""
    for states in (8, STATES):
        structure, shape = spigot.Chains(states), (8, 20, 1 + states, states)
        hull, noise = spigot.ConvexHull(structure), torch.randn(shape, generator=generator)
        z = structure.argmax(torch.randn(shape, generator=generator))
        point, name = z - noise, f"hull of chains, 20 x {states} states, an instance"
        ours = best(lambda h=hull, p=point, s=z: h.project(p, start=s)) / len(z)
        with torch_only():
            plain = best(lambda h=hull, p=point, s=z: h.project(p, start=s), least=1) / len(z)
        yield faster(name, ours, "our torch reference", plain)
        flat = best(lambda h=hull, p=0.1 * noise: h.project(p), least=1) / len(z)
        yield Row(f"{name}, at a flat point (x0.1)", flat)
