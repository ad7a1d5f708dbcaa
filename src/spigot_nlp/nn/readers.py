"""How a classifier reads a structure. Differentiable in z, as the layer asks of what follows it."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class HeadReader(nn.Module):
    r"""Each position beside the average of its heads and of the roles it plays for them.

    $$f_i = \operatorname{ReLU}\Big(b + W_\text{self} h_i + \tfrac{1}{m_i} \sum_p \big[ z_{p \to i} W_\text{head} h_p
    + \sum_\ell z_{p \xrightarrow{\ell} i} W_\text{role} e_\ell \big]\Big), \qquad
    m_i = \max\big(1, \textstyle\sum_p z_{p \to i}\big),$$

    where $m_i$ is not differentiated: heads are weighted by the unlabelled arcs, roles by the labelled ones.

    Args:
        inputs: Length of a state.
        hidden: Length of $f_i$ and of a role's vector.
        roles: How many roles there are; 0 if arcs have none.

    Example:
        >>> read = HeadReader(4, hidden=3, roles=2)
        >>> read(torch.randn(2, 5, 4), torch.zeros(2, 5, 5), torch.zeros(2, 5, 5, 2)).shape
        torch.Size([2, 5, 3])
    """

    def __init__(self, inputs: int, hidden: int, roles: int = 0) -> None:
        super().__init__()
        self.itself = nn.Linear(inputs, hidden)
        self.head = nn.Linear(inputs, hidden, bias=False)
        self.role = nn.Linear(hidden, hidden, bias=False) if roles else None
        self.roles = nn.Parameter(torch.empty(roles, hidden)) if roles else None
        for weight in (self.itself.weight, self.head.weight, *(() if self.role is None else (self.role.weight,))):
            nn.init.xavier_uniform_(weight)
        nn.init.zeros_(self.itself.bias)
        if self.roles is not None:
            bound = (3 / hidden) ** 0.5
            nn.init.uniform_(self.roles, -bound, bound)

    def forward(
        self,
        states: Float[Tensor, "batch n d"],
        arcs: Float[Tensor, "batch n n"],
        labelled: Float[Tensor, "batch n n l"] | None = None,
    ) -> Float[Tensor, "batch n h"]:
        """Features of all positions.

        Args:
            states: One state for each position, the root included.
            arcs: Arcs p -> i.
            labelled: The same arcs by role.
        """
        found = arcs.transpose(-1, -2) @ self.head(states)
        if labelled is not None and self.role is not None and self.roles is not None:
            found = found + labelled.sum(-3) @ self.role(self.roles)
        share = 1 / arcs.detach().sum(-2).clamp(min=1)
        return (self.itself(states) + share.unsqueeze(-1) * found).relu()


class RoundReader(nn.Module):
    r"""Messages from arguments to heads, round by round.

    $$s_i^{(t)} = \tanh\Big(b_2 + W_2 \operatorname{ReLU}\big(b_1 + W_1 h_i + V \textstyle\sum_j z_{i \to j}
    s_j^{(t-1)}\big)\Big), \qquad s^{(0)} = 0.$$

    In a tree of depth d nothing changes after round d + 1, and the root's state has then seen every word by way of the
    tree alone. All rounds share their parameters.

    Args:
        inputs: Length of a state $h_i$.
        hidden: Length of the states $s_i$.
        rounds: How many rounds.

    Example:
        >>> RoundReader(4, hidden=3, rounds=2)(torch.randn(2, 5, 4), torch.zeros(2, 5, 5)).shape
        torch.Size([2, 5, 3])
    """

    def __init__(self, inputs: int, hidden: int, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.itself = nn.Linear(inputs, 2 * hidden)
        self.message = nn.Linear(hidden, 2 * hidden, bias=False)
        self.out = nn.Linear(2 * hidden, hidden)
        for layer in (self.itself, self.message, self.out):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(
        self, states: Float[Tensor, "batch n d"], arcs: Float[Tensor, "batch n n"]
    ) -> Float[Tensor, "batch n h"]:
        """States of all positions after the last round."""
        alone = self.itself(states)
        found = self.out(alone.relu()).tanh()
        for _ in range(self.rounds - 1):
            found = self.out((alone + arcs @ self.message(found)).relu()).tanh()
        return found
