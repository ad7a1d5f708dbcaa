r"""Latent clusters: which estimator finds a hidden choice from the final label alone?

A point $x = [u; v]$ has a place $u$ and a content $v$. The place is drawn around the centre of one of $K$ clusters,
$u \sim \mathcal N(m_c, I)$; the content is noise, $v \sim \mathcal N(0, I)$. The label is read off the content by a
rule of the cluster's own, $y = [\,w_c^\top v > 0\,]$. The model sees $x$ and is told neither the cluster nor which
half is which:

$$s = A x + a, \qquad z = \operatorname{argmax}_{\mathrm{OneOf}}(s), \qquad
  \operatorname{logit}(y) = \textstyle\sum_k z_k\, (b_k^\top x + \beta_k).$$

$A$ learns only through $z$, so the estimators differ in nothing but what they send back through it. After Mihaylova,
Niculae, Martins (2020), Understanding the mechanics of SPIGOT, §5.1; the data here are our own.

All seeds train at once, as a leading batch axis. Every contender of a seed gets the same data, the same initial
parameters, the same order of batches, the same optimiser and learning rate. Losses are summed over instances, because
SPIGOT is not linear in the loss; Adam takes care of the scale.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean, stdev

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn import functional as F

import spigot


@dataclass(frozen=True)
class Contender:
    """One row of the comparison.

    Attributes:
        name: As it appears in tables.
        estimator: How gradients pass the choice; `None` is given the true cluster instead of choosing one.
    """

    name: str
    estimator: spigot.AbstractEstimator | None


CONTENDERS = (
    Contender("gold clusters", None),
    Contender("StructuredAttention", spigot.StructuredAttention()),
    Contender("SparseMAP", spigot.SparseMAP()),
    Contender("StraightThrough", spigot.StraightThrough()),
    Contender("Spigot η = 0.1", spigot.Spigot(eta=0.1)),
    Contender("Spigot η = 1", spigot.Spigot(eta=1.0)),
    Contender("Spigot η = 2", spigot.Spigot(eta=2.0)),
    Contender("Pipeline", spigot.Pipeline()),
)
"""Everything that is compared. The step sizes are those of the literature, not tuned here."""


@dataclass(frozen=True)
class Settings:
    """The whole experiment, as values; one setting for every contender.

    Attributes:
        clusters: The numbers of clusters $K$, one task each.
        seeds: How many repetitions, each with data and parameters of its own.
        epochs: Passes over the training points.
        train: Training points of each seed.
        test: Test points of each seed.
        batch: Points in a step.
        learning_rate: Of Adam.
        half: Size of each half of $x$.
        separation: How far the centres are from the origin; the clusters have standard deviation one.
        noise: Share of labels that are flipped, in training and test.
        seed: Where the random numbers start.

    Example:
        >>> Settings(seeds=0)
        Traceback (most recent call last):
        ...
        ValueError: seeds is 0; it must be at least 1.
    """

    clusters: tuple[int, ...] = (3, 10)
    seeds: int = 8
    epochs: int = 20
    train: int = 2000
    test: int = 500
    batch: int = 50
    learning_rate: float = 0.03
    half: int = 15
    separation: float = 6.0
    noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and field.name != "seed" and value < 1:
                raise ValueError(f"{field.name} is {value}; it must be at least 1.")
            if field.type is float and field.name != "noise" and not value > 0:
                raise ValueError(f"{field.name} is {value}; it must be positive.")
        if not 0 <= self.noise < 0.5:
            raise ValueError(f"noise is {self.noise}; it must be at least 0 and less than 0.5.")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; it must not be negative.")
        if not self.clusters or min(self.clusters) < 2:
            raise ValueError(f"clusters is {self.clusters}; give at least one number of clusters, each 2 or more.")

    @classmethod
    def quick(cls) -> "Settings":
        """A run of a few seconds, to see that everything works."""
        return cls(clusters=(3,), seeds=3, epochs=6, train=1000, test=500, batch=25)


@dataclass(frozen=True)
class Points:
    """Points of all seeds.

    Attributes:
        x: Features, `(seeds, points, 2 * half)`.
        cluster: The true cluster of each point.
        y: Labels, 0 or 1 in floating point.
    """

    x: Tensor
    cluster: Tensor
    y: Tensor


@dataclass(frozen=True)
class Task:
    """The data of one number of clusters.

    Attributes:
        clusters: How many clusters.
        centres: Where they are, `(seeds, clusters, 2 * half)`.
        train: What is learnt from.
        test: What is measured on.
    """

    clusters: int
    centres: Tensor
    train: Points
    test: Points


@dataclass(frozen=True)
class Epoch:
    """What a contender can do after an epoch (0: before the first), on the test points, one value for each seed.

    Attributes:
        clusters: The task.
        contender: Name of the contender.
        epoch: How many epochs it has trained.
        accuracy: Share of labels that are right, with the forward pass it was trained with.
        hard_accuracy: The same when the best cluster alone classifies; differs for soft estimators only.
        agreement: Share of points whose chosen cluster is the true one, under the best one-to-one matching.
        choices: Chosen cluster of each test point of the first seed, matched to the true ones.
    """

    clusters: int
    contender: str
    epoch: int
    accuracy: tuple[float, ...]
    hard_accuracy: tuple[float, ...]
    agreement: tuple[float, ...]
    choices: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A contender's final standing: mean and standard deviation over seeds.

    Example:
        >>> Row.of(Epoch(3, "StraightThrough", 9, (1.0, 0.5), (1.0, 0.5), (0.5, 0.5), ())).agreement
        (0.5, 0.0)
    """

    clusters: int
    contender: str
    accuracy: tuple[float, float]
    hard_accuracy: tuple[float, float]
    agreement: tuple[float, float]

    @classmethod
    def of(cls, last: Epoch) -> "Row":
        """The summary of a contender's last epoch."""
        return cls(
            last.clusters,
            last.contender,
            mean_and_spread(last.accuracy),
            mean_and_spread(last.hard_accuracy),
            mean_and_spread(last.agreement),
        )


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation; a single value has none, shown as 0.

    Example:
        >>> mean_and_spread([0.5])
        (0.5, 0.0)
    """
    return fmean(values), stdev(values) if len(values) > 1 else 0.0


def make_task(settings: Settings, clusters: int) -> Task:
    """Draw centres, rules and points for every seed.

    Example:
        >>> task = make_task(Settings(seeds=2, train=50), clusters=3)
        >>> task.train.x.shape, task.train.y.shape
        (torch.Size([2, 50, 30]), torch.Size([2, 50]))
    """
    # One generator a seed: a seed's data do not depend on how many others run beside it.
    singles = [_make_seed(settings, clusters, settings.seed + i) for i in range(settings.seeds)]
    centres, train, test = zip(*singles, strict=True)
    return Task(clusters, torch.stack(centres), _stack(train), _stack(test))


def _make_seed(settings: Settings, clusters: int, seed: int) -> tuple[Tensor, Points, Points]:
    random = _random("data", seed)
    half = settings.half
    centres = settings.separation * F.normalize(torch.randn(clusters, half, generator=random), dim=-1)
    rules = torch.randn(clusters, half, generator=random)

    def draw(count: int) -> Points:
        cluster = torch.randint(clusters, (count,), generator=random)
        place = centres[cluster] + torch.randn(count, half, generator=random)
        content = torch.randn(count, half, generator=random)
        flipped = torch.rand(count, generator=random) < settings.noise
        y = ((rules[cluster] * content).sum(-1) > 0) ^ flipped
        return Points(torch.cat([place, content], dim=-1), cluster, y.float())

    return F.pad(centres, (0, half)), draw(settings.train), draw(settings.test)


def _random(purpose: str, seed: int) -> torch.Generator:
    """A stream of its own for each purpose, so that no weights are drawn from the numbers that made the data."""
    streams = ("data", "parameters", "order")
    return torch.Generator().manual_seed(seed * len(streams) + streams.index(purpose))


def _stack(points: Sequence[Points]) -> Points:
    return Points(*(torch.stack([getattr(p, name) for p in points]) for name in ("x", "cluster", "y")))


class Chooser(torch.nn.Module):
    """A linear scorer, a choice, and a linear classifier for each choice; one of everything for each seed.

    Example:
        >>> model = Chooser(2, size=40, clusters=3, estimator=spigot.StraightThrough(), seed=0)
        >>> logits, scores, hard = model(torch.zeros(2, 5, 40), torch.zeros(2, 5, dtype=torch.long))
        >>> logits.shape, scores.shape
        (torch.Size([2, 5]), torch.Size([2, 5, 3]))
    """

    def __init__(
        self, seeds: int, size: int, clusters: int, estimator: spigot.AbstractEstimator | None, seed: int
    ) -> None:
        super().__init__()
        self.estimator = estimator
        weights = torch.stack(
            [torch.randn(2, size, clusters, generator=_random("parameters", seed + i)) for i in range(seeds)]
        )
        self.scorer, self.classifiers = (torch.nn.Parameter(w / size**0.5) for w in weights.unbind(1))
        self.scorer_bias = torch.nn.Parameter(torch.zeros(seeds, 1, clusters))
        self.classifier_bias = torch.nn.Parameter(torch.zeros(seeds, 1, clusters))

    def forward(self, x: Tensor, cluster: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of the label, scores of the clusters, and the logits if the best cluster decided alone.

        Args:
            x: Features, `(seeds, points, size)`.
            cluster: The true clusters, which only the gold contender looks at.
        """
        scores = x @ self.scorer + self.scorer_bias
        opinions = x @ self.classifiers + self.classifier_bias
        if self.estimator is None:
            scores = F.one_hot(cluster, scores.shape[-1]).to(scores.dtype)
            z = scores
        else:
            z = spigot.argmax(scores, spigot.OneOf(), self.estimator)
        hard = opinions.gather(-1, scores.argmax(-1, keepdim=True)).squeeze(-1)
        return (z * opinions).sum(-1), scores, hard


def train(task: Task, contender: Contender, settings: Settings) -> Iterator[Epoch]:
    """Train one contender, all seeds together; yields before the first epoch and after each.

    Example:
        >>> tiny = Settings(clusters=(3,), seeds=1, epochs=2, train=100, test=50)
        >>> [e.epoch for e in train(make_task(tiny, 3), CONTENDERS[3], tiny)]
        [0, 1, 2]
    """
    data = task.train
    model = Chooser(settings.seeds, data.x.shape[-1], task.clusters, contender.estimator, settings.seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    shuffle = _random("order", settings.seed)
    yield _measure(model, task, contender, 0)
    for epoch in range(1, settings.epochs + 1):
        for rows in torch.randperm(settings.train, generator=shuffle).split(settings.batch):
            logits, _, _ = model(data.x[:, rows], data.cluster[:, rows])
            loss = F.binary_cross_entropy_with_logits(logits, data.y[:, rows], reduction="sum")
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        yield _measure(model, task, contender, epoch)


@torch.no_grad()
def _measure(model: Chooser, task: Task, contender: Contender, epoch: int) -> Epoch:
    test = task.test
    logits, scores, hard = model(test.x, test.cluster)
    chosen = scores.argmax(-1)
    matched = torch.stack(
        [match(c, t, task.clusters)[c] for c, t in zip(chosen.unbind(), test.cluster.unbind(), strict=True)]
    )

    def share(right: Tensor) -> tuple[float, ...]:
        return tuple(right.double().mean(-1).tolist())

    return Epoch(
        clusters=task.clusters,
        contender=contender.name,
        epoch=epoch,
        accuracy=share((logits > 0) == (test.y > 0)),
        hard_accuracy=share((hard > 0) == (test.y > 0)),
        agreement=share(matched == test.cluster),
        choices=tuple(matched[0].tolist()),
    )


def match(chosen: Tensor, true: Tensor, clusters: int) -> Tensor:
    """Which true cluster each chosen one stands for, one to one, so that most points agree (Hungarian algorithm).

    Example:
        >>> match(torch.tensor([2, 2, 0, 1]), torch.tensor([0, 0, 1, 2]), 3)
        tensor([1, 2, 0])
    """
    together = torch.bincount(chosen * clusters + true, minlength=clusters**2).reshape(clusters, clusters)
    _, columns = linear_sum_assignment(together.numpy(), maximize=True)
    return torch.from_numpy(columns)


def run(settings: Settings, contenders: Iterable[Contender] = CONTENDERS) -> Iterator[Epoch]:
    """The experiment: every contender on every task, as a stream of epochs.

    Who draws a bar, prints or keeps the records is the caller's business; `total_epochs` says how many will come.

    Example:
        >>> tiny = Settings(clusters=(3,), seeds=2, epochs=1, train=100, test=50)
        >>> [(e.contender, e.epoch) for e in run(tiny, CONTENDERS[3:5])]
        [('StraightThrough', 0), ('StraightThrough', 1), ('Spigot η = 0.1', 0), ('Spigot η = 0.1', 1)]
    """
    contenders = tuple(contenders)
    for clusters in settings.clusters:
        task = make_task(settings, clusters)
        for contender in contenders:
            yield from train(task, contender, settings)


def total_epochs(settings: Settings, contenders: Sequence[Contender] = CONTENDERS) -> int:
    """How many records `run` yields.

    Example:
        >>> total_epochs(Settings(clusters=(3, 10), epochs=4), CONTENDERS[:2])
        20
    """
    return len(settings.clusters) * len(contenders) * (settings.epochs + 1)


def summarise(epochs: Iterable[Epoch]) -> list[Row]:
    """The last epoch of each contender on each task, in the order they ran.

    Example:
        >>> tiny = Settings(clusters=(3,), seeds=2, epochs=1, train=100, test=50)
        >>> [row.contender for row in summarise(run(tiny, CONTENDERS[:2]))]
        ['gold clusters', 'StructuredAttention']
    """
    last = {(e.clusters, e.contender): e for e in epochs}
    return [Row.of(e) for e in last.values()]


def as_json(settings: Settings, epochs: Sequence[Epoch]) -> dict[str, object]:
    """Settings, final rows and learning curves as plain values, ready for `json.dumps`.

    Example:
        >>> sorted(as_json(Settings(), []))
        ['curves', 'rows', 'settings']
    """
    curves = [{name: value for name, value in asdict(e).items() if name != "choices"} for e in epochs]
    rows = []
    for row in summarise(epochs):
        record: dict[str, object] = {"clusters": row.clusters, "contender": row.contender}
        for measure in ("accuracy", "hard_accuracy", "agreement"):
            mean, spread = getattr(row, measure)
            record[measure] = {"mean": mean, "spread": spread}
        rows.append(record)
    return {"settings": asdict(settings), "rows": rows, "curves": curves}
