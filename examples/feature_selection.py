"""Learned feature selection: a network that may look at three of its twenty inputs, and must find out which.

The target depends on three features; the others are noise. A score for each feature goes through `Subsets(3)`: the
network sees three features and no more, in training as in use, and SPIGOT tells the scores what the loss thinks of the
choice. At the end the chosen features are the true ones, and the k best subsets say how sure the choice is.

    python examples/feature_selection.py
"""

import torch
from torch import nn

import spigot

FEATURES, TRUE = 20, (3, 8, 14)


def data(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and a target that three of them decide."""
    x = torch.randn(count, FEATURES, generator=generator)
    a, b, c = (x[:, i] for i in TRUE)
    return x, torch.tanh(2 * a) + b - 0.8 * c + 0.3 * a * c


class Selective(nn.Module):
    """A small regressor behind a choice of features."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(FEATURES))
        self.select = spigot.Argmax(spigot.Subsets(3), spigot.Spigot(eta=1.0, max_norm=1.0))
        self.regressor = nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # A little noise lets features that are not chosen yet have a try.
        noise = 0.3 * torch.randn_like(self.scores) if self.training else 0.0
        chosen = self.select(self.scores + noise)
        return self.regressor(x * chosen).squeeze(-1)


def main() -> None:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Selective()
    optimiser = torch.optim.Adam(
        [{"params": [model.scores], "lr": 0.03}, {"params": model.regressor.parameters(), "lr": 0.01}]
    )
    for _ in range(500):
        x, y = data(128, generator)
        loss = (model(x) - y).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.eval()
    x, y = data(2000, generator)
    with torch.no_grad():
        error = (model(x) - y).square().mean().item()
        best, values = spigot.Subsets(3).k_best(model.scores, 2)
    found = tuple(best[0].nonzero().flatten().tolist())
    print(f"chosen features {found}, true features {TRUE}")
    print(f"mean squared error {error:.3f}; the target varies by {y.var().item():.3f}")
    print(
        f"the second best choice, {tuple(best[1].nonzero().flatten().tolist())}, is {values[0] - values[1]:.2f} behind"
    )
    assert found == TRUE, f"chose {found}, not {TRUE}"
    assert error < 0.1 * y.var().item()


if __name__ == "__main__":
    main()
