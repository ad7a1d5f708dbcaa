"""The numbers of the experiment: one setting for every contender."""

from dataclasses import dataclass, fields

TASKS = ("clusters", "chains", "trees", "subsets", "paths", "matchings")
"""The tasks by name, in the order of tables."""


@dataclass(frozen=True)
class Settings:
    """The whole experiment, as values.

    Attributes:
        tasks: Which tasks to run.
        seeds: How many repetitions, each with data and parameters of its own.
        steps: Updates of the parameters in one training.
        tuning_seeds: Repetitions, other than those, on which each contender chooses the value of its main option by
            the end loss on unseen points; 0 for its middle value without a choice.
        draws: How often a gradient with noise in it is drawn for its mean and spread.
        train: Training points of each seed.
        test: Test points of each seed.
        batch: Points in a step, and in the gradients that are compared.
        learning_rate: Of Adam.
        seed: Where the random numbers start.

    Example:
        >>> Settings(seeds=0)
        Traceback (most recent call last):
        ...
        ValueError: seeds is 0; it must be at least 1.
    """

    tasks: tuple[str, ...] = TASKS
    seeds: int = 5
    steps: int = 200
    tuning_seeds: int = 2
    draws: int = 100
    train: int = 1000
    test: int = 500
    batch: int = 32
    learning_rate: float = 0.03
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in ("seed", "tuning_seeds") else 1
            if field.type is int and value < least:
                raise ValueError(f"{field.name} is {value}; it must be at least {least}.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate is {self.learning_rate}; it must be positive.")
        if self.draws < 2:
            raise ValueError(f"draws is {self.draws}; a spread needs at least 2.")
        for name in self.tasks:
            if name not in TASKS:
                raise ValueError(f"there is no task {name!r}; there are {', '.join(TASKS)}.")

    @classmethod
    def quick(cls) -> "Settings":
        """A run of a few seconds, to see that everything works."""
        return cls(seeds=2, steps=5, tuning_seeds=0, draws=2, train=100, test=100, batch=8)

    @property
    def every(self) -> int:
        """Steps between two measurements."""
        return max(1, self.steps // 10)

    def reported(self) -> range:
        """The seeds whose results are reported."""
        return range(self.seed, self.seed + self.seeds)

    def tuning(self) -> range:
        """The seeds that options are chosen on, far from those reported.

        Example:
            >>> Settings(seed=3).reported(), Settings(seed=3).tuning()
            (range(3, 8), range(1000003, 1000005))
        """
        return range(1_000_000 + self.seed, 1_000_000 + self.seed + self.tuning_seeds)
