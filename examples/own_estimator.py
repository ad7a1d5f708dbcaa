"""An estimator of your own, on a wire of a system: it sends back the sign of each gradient, and nothing of its size.

    python examples/own_estimator.py                                           # tries it
    spigot train synthetic --system sign --plugin examples/own_estimator.py    # trains with it

The class registers itself; the options of `[estimator]`, or of `estimator = { name = "sign", ... }`, are its fields.
"""

from dataclasses import dataclass

import torch

import spigot
from spigot import ESTIMATORS


@ESTIMATORS.register("sign")
@dataclass(frozen=True)
class Sign(spigot.AbstractSurrogate):
    """The argmax forward; eta times the sign of the gradient back."""

    eta: float = 0.01

    def pullback(self, structure, scores, z, saved, grad, mask):
        return self.eta * grad.sign()


if __name__ == "__main__":
    scores = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    z = spigot.argmax(scores, spigot.OneOf(), Sign(eta=0.5))
    (z * torch.tensor([1.0, -2.0, 0.0])).sum().backward()
    assert scores.grad is not None
    print("straight through the layer:", scores.grad.tolist())
    assert scores.grad.tolist() == [0.5, -0.5, 0.0]

    from spigot_nlp.config import make_config

    config = make_config({"system": "sign", "estimator": {"eta": 0.1}})
    print("on the wire of a system:", config.stages["semantics"].reads[0].estimator)
