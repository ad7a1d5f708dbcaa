"""Head features, Eq. 7."""

import torch

from spigot_nlp.wires.readers import head_features


def test_equation_7_head_features() -> None:
    """h~_j = [h_j ; sum_i z_ij h_i], written as a loop, for arbitrary z."""
    states, z = torch.randn(3, 5, 4, dtype=torch.float64), torch.rand(3, 5, 5, dtype=torch.float64)
    found = head_features(states, z)
    for b in range(3):
        for j in range(5):
            head = sum((z[b, i, j] * states[b, i] for i in range(5)), torch.zeros(4, dtype=torch.float64))
            torch.testing.assert_close(found[b, j], torch.cat((states[b, j], head)))


def test_equation_7_gradient_of_an_arc_is_its_heads_state_times_the_slots_gradient() -> None:
    """dL/dz_ij = h_i . dL/d(second half of h~_j), for every i, whether or not the arc is in the tree."""
    states = torch.randn(2, 4, 3, dtype=torch.float64)
    z = torch.zeros(2, 4, 4, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(2, 4, 6, dtype=torch.float64)
    (head_features(states, z) * upstream).sum().backward()
    assert z.grad is not None
    for b in range(2):
        for i in range(4):
            for j in range(4):
                torch.testing.assert_close(z.grad[b, i, j], states[b, i] @ upstream[b, j, 3:])


def test_equation_7_passes_gradcheck() -> None:
    states = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    z = torch.rand(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(head_features, (states, z))
