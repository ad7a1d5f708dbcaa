"""Is the built-in corpus hard enough? Semantic parsing with and without gold heads; labels from bags of words.

Run it with `python -m benchmarks.synthetic_syntax`. A small semantic parser, a BiLSTM and a classifier of every pair of
words, is trained twice: on its states h_j alone, and on [h_j ; h_head(j)] with the gold head. The second shows what
perfect syntax is worth. A bag of words, in turn, should not see what the sentiment label depends on.
"""

import argparse
import time
from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from research.synthetic import Splits, splits
from spigot_nlp.data.sentence import Sentence

NONE = 0


class Index:
    """Numbers for strings; 0 is any other."""

    def __init__(self, strings: Sequence[str]) -> None:
        counts = Counter(strings)
        self.counts = [0, *counts.values()]
        self._numbers = {string: number for number, string in enumerate(counts, start=1)}

    def __len__(self) -> int:
        return len(self.counts)

    def __call__(self, strings: Sequence[str]) -> list[int]:
        return [self._numbers.get(string, 0) for string in strings]


def fields(sentence: Sentence) -> tuple[tuple[str, ...], ...]:
    """What a parser reads: words and tags."""
    if sentence.tags is None:
        raise ValueError(f"sentence {sentence.id} has no tags.")
    return tuple(form.lower() for form in sentence.forms), sentence.tags


class Parser(nn.Module):
    """A BiLSTM over words and tags and a classifier of pairs of words, with or without the states of gold heads."""

    def __init__(self, sentences: Sequence[Sentence], *, heads: bool) -> None:
        super().__init__()
        self.heads = heads
        rows = [fields(sentence) for sentence in sentences]
        self.words = Index([word for row in rows for word in row[0]])
        self.tags = Index([tag for row in rows for tag in row[1]])
        self.roles = Index([arc.role for sentence in sentences if sentence.graph for arc in sentence.graph.arcs])
        self.word = nn.Embedding(len(self.words), 64)
        self.tag = nn.Embedding(len(self.tags), 32)
        self.encoder = nn.LSTM(96, 100, num_layers=2, bidirectional=True, batch_first=True)
        width = 400 if heads else 200
        self.predicate = nn.Linear(width, 100)
        self.argument = nn.Linear(width, 100)
        self.output = nn.Linear(100, len(self.roles))
        self.counts = torch.tensor(self.words.counts)

    def forward(self, sentences: Sequence[Sentence]) -> Tensor:
        """Scores (sentences, predicate, argument, role), role 0 for none."""
        rows = [fields(sentence) for sentence in sentences]
        size = max(map(len, sentences))
        words = torch.tensor([self.words(row[0]) + [0] * (size - len(row[0])) for row in rows])
        tags = torch.tensor([self.tags(row[1]) + [0] * (size - len(row[1])) for row in rows])
        if self.training:
            words = words.masked_fill(torch.rand(words.shape) < 0.25 / (0.25 + self.counts[words]), 0)
        states, _ = self.encoder(torch.cat([self.word(words), self.tag(tags)], -1))
        if self.heads:
            head = torch.tensor([[*(sentence.heads or ()), *[0] * (size - len(sentence))] for sentence in sentences])
            padded = F.pad(states, (0, 0, 1, 0))
            states = torch.cat([states, padded.gather(1, head[..., None].expand(-1, -1, padded.shape[-1]))], -1)
        hidden = torch.tanh(self.predicate(states)[:, :, None] + self.argument(states)[:, None])
        return self.output(hidden)

    def gold(self, sentences: Sequence[Sentence]) -> Tensor:
        """Roles (sentences, predicate, argument), -100 where there is no pair."""
        size = max(map(len, sentences))
        roles = torch.full((len(sentences), size, size), -100)
        for row, sentence in zip(roles, sentences, strict=True):
            row[: len(sentence), : len(sentence)] = NONE
            arcs = sentence.graph.arcs if sentence.graph else ()
            for arc, role in zip(arcs, self.roles([arc.role for arc in arcs]), strict=True):
                row[arc.predicate - 1, arc.argument - 1] = role
        return roles


def batches(sentences: Sequence[Sentence], size: int) -> list[list[Sentence]]:
    """Sentences of like length together."""
    ordered = sorted(sentences, key=len)
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


def train(sentences: Sequence[Sentence], *, heads: bool, epochs: int) -> Parser:
    """Fit a parser by log loss."""
    torch.manual_seed(1)
    parser = Parser(sentences, heads=heads)
    optimiser = torch.optim.Adam(parser.parameters(), lr=2e-3)
    chunks = batches(sentences, 16)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=epochs * len(chunks))
    for _ in range(epochs):
        for place in torch.randperm(len(chunks)).tolist():
            scores = parser(chunks[place])
            loss = F.cross_entropy(
                scores.flatten(0, 2), parser.gold(chunks[place]).flatten(), ignore_index=-100, reduction="sum"
            )
            optimiser.zero_grad()
            (loss / len(chunks[place])).backward()
            nn.utils.clip_grad_norm_(parser.parameters(), 5.0)
            optimiser.step()
            schedule.step()
    return parser.eval()


@torch.no_grad()
def labelled_f1(parser: Parser, sentences: Sequence[Sentence]) -> float:
    """Labelled F1 over arcs, in per cent; tops are left out."""
    right = found = wanted = 0
    for chunk in batches(sentences, 64):
        gold = parser.gold(chunk)
        guess = parser(chunk).argmax(-1).masked_fill(gold == -100, NONE)
        right += int(((guess == gold) & (gold > NONE)).sum())
        found += int((guess > NONE).sum())
        wanted += sum(len(sentence.graph.arcs) for sentence in chunk if sentence.graph)
    return 100 * 2 * right / (found + wanted)


def bag_of_words(parts: Splits) -> tuple[float, float, float]:
    """Accuracy of logistic regression on word counts: train, test, out of domain; the best of several penalties."""
    index = Index([word for sentence in parts.train for word in fields(sentence)[0]])

    def counts(sentences: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
        matrix = torch.zeros(len(sentences), len(index))
        for row, sentence in zip(matrix, sentences, strict=True):
            numbers = torch.tensor(index(fields(sentence)[0]))
            row.index_add_(0, numbers, torch.ones(len(numbers)))
        return matrix, torch.tensor([float(sentence.label or 0) for sentence in sentences])

    sets = [counts(sentences) for sentences in (parts.train, parts.dev, parts.test, parts.ood)]
    best = (0.0, 0.0, 0.0, 0.0)
    for penalty in (3e-4, 1e-3, 3e-3, 1e-2):
        weights = torch.zeros(len(index), requires_grad=True)
        bias = torch.zeros(1, requires_grad=True)
        optimiser = torch.optim.LBFGS([weights, bias], max_iter=100)

        def objective(weights: Tensor = weights, bias: Tensor = bias, penalty: float = penalty) -> Tensor:
            loss = (
                F.binary_cross_entropy_with_logits(sets[0][0] @ weights + bias, sets[0][1])
                + penalty * weights.square().sum()
            )
            weights.grad = bias.grad = None
            loss.backward()
            return loss

        optimiser.step(objective)  # pyright: ignore[reportArgumentType]
        with torch.no_grad():
            scores = [100 * float(((x @ weights + bias > 0) == (y > 0)).float().mean()) for x, y in sets]
        best = max(best, (scores[1], scores[0], scores[2], scores[3]))
    return best[1:]


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.synthetic_syntax", description=__doc__)
    arguments.add_argument("--train", type=int, nargs="+", default=[2000], help="sizes of the training set")
    arguments.add_argument("--epochs", type=int, default=12, help="over 2,000 sentences; as many steps over fewer")
    arguments.add_argument("--bag", type=int, default=10000, help="training sentences of the bag of words")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    parts = splits(train=options.bag, dev=1000, test=1000, ood=1000)
    everything = parts.train + parts.dev + parts.test
    print(f"words a sentence: {sum(map(len, everything)) / len(everything):.1f}, out of domain: "
          f"{sum(map(len, parts.ood)) / len(parts.ood):.1f}")  # fmt: skip
    print("bag of words, accuracy: train {:.1f}, test {:.1f}, out of domain {:.1f}".format(*bag_of_words(parts)))
    for size in options.train:
        for heads in (False, True):
            began = time.perf_counter()
            parser = train(parts.train[:size], heads=heads, epochs=options.epochs * 2000 // size)
            inside, outside = (labelled_f1(parser, sentences) for sentences in (parts.test, parts.ood))
            print(f"{size} sentences, {'gold heads' if heads else 'no syntax ':10}: labelled F1 {inside:.1f}, "
                  f"out of domain {outside:.1f} ({time.perf_counter() - began:.0f} s)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
