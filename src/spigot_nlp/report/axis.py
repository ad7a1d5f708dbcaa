"""A horizontal axis of a chart: where a value stands, and which round values to write below it."""

import math
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """A range of values, spread over a range of places.

    Attributes:
        low: The value at the left end.
        high: The value at the right end.
        left: Where the left end is, in the units of the drawing.
        right: Where the right end is.

    Example:
        >>> axis = Axis(60.0, 70.0, left=100.0, right=300.0)
        >>> axis.place(65.0), axis.ticks(3)
        (200.0, [60.0, 65.0, 70.0])
    """

    low: float
    high: float
    left: float
    right: float

    def place(self, value: float) -> float:
        """Where a value stands."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.left + share * (self.right - self.left), 1)

    def ticks(self, most: int) -> list[float]:
        """Round values within the range, evenly apart, at most so many."""
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        for step in (factor * power for factor in (*_STEPS, 20.0)):
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first + 1 <= most:
                return [round(k * step, 12) for k in range(first, last + 1)]
        return []

    def text(self, value: float, most: int) -> str:
        """A tick as it is written: all of them with as many digits as the finest needs."""
        ticks = self.ticks(most)
        digits = max((_digits(tick) for tick in ticks), default=0)
        return f"{value:.{digits}f}".replace("-", "−")


def _digits(value: float) -> int:
    return next((digits for digits in range(12) if math.isclose(round(value, digits), value, abs_tol=1e-12)), 12)
