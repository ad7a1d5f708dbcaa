"""A tagger: one tag for each word, where neighbours have a say.

Words are ambiguous, and tags follow each other by habit. The first tagger is taught with gold tags: a linear-chain CRF,
which is `crf_nll` on `Chains`. It is compared with one that looks at each word alone.

The second is never shown a tag. The words of a sentence go through hidden phases that last for a while, and each phase
answers questions by a rule of its own; only the answers are given. The best chain of phases is found inside the
network, and an estimator brings what the answers say back to the scores. The answers look at phases alone, so that
`StraightThrough` would leave the transitions as they are. `IMLE` compares the best chain with the best after a step
against the gradient, and where these differ in phases they differ in transitions, too: it learns that phases last.
"""

import torch
from torch import nn
from torch.nn import functional as F

import spigot

TAGS, WORDS, LENGTH = 4, 12, 20
PHASES, SIZE = 3, 6
SEEDS = range(2)  # results differ a good deal from seed to seed: never judge by one


def sentences(count: int, habits: torch.Tensor, lexicon: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Tags that follow the habits, and words that the tags use."""
    tags = [torch.randint(TAGS, (count,))]
    while len(tags) < LENGTH:
        tags.append(torch.multinomial(habits[tags[-1]], 1).squeeze(-1))
    gold = torch.stack(tags, 1)
    return torch.multinomial(lexicon[gold.flatten()], 1).reshape(count, LENGTH), gold


class Tagger(nn.Module):
    """Scores of tags from words, and of transitions, which are the same everywhere."""

    def __init__(self, chains: spigot.Chains) -> None:
        super().__init__()
        self.chains = chains
        self.unary = nn.Embedding(WORDS, chains.states)
        self.transitions = nn.Parameter(torch.zeros(chains.states, chains.states))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.chains.pack(self.unary(words), self.transitions)


def taught() -> tuple[float, float]:
    """Accuracy of the CRF, and of words looked at alone."""
    torch.manual_seed(0)
    habits, lexicon = (torch.randn(TAGS, n).mul(2).softmax(-1) for n in (TAGS, WORDS))
    chains = spigot.Chains(TAGS)
    tagger = Tagger(chains)
    alone = nn.Embedding(WORDS, TAGS)
    words, gold = sentences(200, habits, lexicon)
    onehot = F.one_hot(gold, TAGS).float()
    members = chains.pack(onehot, onehot[:, :-1, :, None] * onehot[:, 1:, None, :])
    assert chains.contains(members).all()
    optimiser = torch.optim.Adam([*tagger.parameters(), *alone.parameters()], lr=0.1)
    for _ in range(40):
        loss = spigot.crf_nll(tagger(words), members, chains).mean()
        loss = loss + F.cross_entropy(alone(words).flatten(0, 1), gold.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        words, gold = sentences(500, habits, lexicon)
        states, _ = chains.unpack(chains.argmax(tagger(words)))
        return accuracy_of(states, gold), accuracy_of(alone(words), gold)


def accuracy_of(scores: torch.Tensor, gold: torch.Tensor) -> float:
    return (scores.argmax(-1) == gold).float().mean().item()


def questions(count: int, centres: torch.Tensor, rules: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Phases that last, blurred places that betray them a little, questions, and answers by the rule of the phase."""
    phase = torch.randint(PHASES, (count, LENGTH))
    for t in range(1, LENGTH):
        stays = torch.rand(count) < 0.95
        phase[:, t] = torch.where(stays, phase[:, t - 1], phase[:, t])
    place = centres[phase] + torch.randn(count, LENGTH, SIZE)
    content = torch.randn(count, LENGTH, SIZE)
    answer = ((rules[phase] * content).sum(-1) > 0).float()
    return torch.cat((place, content), -1), answer


class Answerer(nn.Module):
    """Chooses a phase for each word, and lets the rule of the phase answer."""

    def __init__(self, estimator: spigot.AbstractEstimator, neighbours: bool) -> None:
        super().__init__()
        self.chains = spigot.Chains(PHASES)
        self.choose = spigot.Argmax(self.chains, estimator)
        self.scorer = nn.Linear(2 * SIZE, PHASES)
        self.transitions = nn.Parameter(torch.zeros(PHASES, PHASES), requires_grad=neighbours)
        self.rules = nn.Linear(2 * SIZE, PHASES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.chains.unpack(self.choose(self.chains.pack(self.scorer(x), self.transitions)))
        return (states * self.rules(x)).sum(-1)


def untaught(neighbours: bool, seed: int) -> float:
    """Accuracy of the answers, with transitions that are learnt or without any."""
    torch.manual_seed(seed)
    centres, rules = 1.5 * torch.eye(PHASES, SIZE), 3 * torch.linalg.qr(torch.randn(SIZE, PHASES)).Q.mT
    x, y = questions(300, centres, rules)
    network = Answerer(spigot.IMLE(2.0, samples=2), neighbours)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.03)
    for _ in range(12):
        for rows in torch.randperm(len(x)).split(30):
            loss = F.binary_cross_entropy_with_logits(network(x[rows]), y[rows], reduction="sum")
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        x, y = questions(500, centres, rules)
        return ((network(x) > 0) == (y > 0)).float().mean().item()


def main() -> None:
    torch.set_num_threads(1)  # small tensors: more threads only wait for each other
    crf, alone = taught()
    print(f"taught by tags:     {crf:.1%} of words right, {alone:.1%} without transitions")
    assert crf > alone + 0.05
    means = []
    for neighbours in (True, False):
        each = [untaught(neighbours, seed) for seed in SEEDS]
        means.append(sum(each) / len(each))
        name = "with transitions" if neighbours else "without"
        seeds = ", ".join(f"{accuracy:.1%}" for accuracy in each)
        print(f"taught by answers:  {means[-1]:.1%} of answers right {name}; seeds: {seeds}")
    assert means[0] > means[1] + 0.01


if __name__ == "__main__":
    main()
