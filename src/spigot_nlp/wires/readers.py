"""How one stage sees the structure of another. Differentiable in z, as the layer asks of what follows it."""

import abc
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, final

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from spigot import Registry
from spigot.types import Parts
from spigot_nlp.values import Layers, OptionalSize, Size, Values, check_options


def head_features(states: Float[Tensor, "batch n d"], z: Float[Tensor, "batch n n"]) -> Float[Tensor, "batch n 2*d"]:
    r"""Each word's state beside that of its head: $\tilde h_j = [h_j ; \sum_i z_{ij} h_i]$ (Eq. 7).

    Args:
        states: One state for each position, the root included.
        z: Arcs i -> j. The root has no head, so its second half is zero.

    Example:
        >>> states = torch.tensor([[[1.0], [2.0], [3.0]]])
        >>> z = torch.tensor([[[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])    # 0 -> 2 -> 1
        >>> head_features(states, z)[0].tolist()
        [[1.0, 0.0], [2.0, 3.0], [3.0, 1.0]]
    """
    return torch.cat((states, z.transpose(-1, -2) @ states), -1)


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


READERS: "Registry[AbstractReader]" = Registry("reader")
"""The readers by the name that a configuration calls them."""


class Source(Protocol):
    """What a reader asks of the stage whose structures it reads.

    Attributes:
        name: What the stage is called.
        arc_labels: How many labels its arcs have, 0 if they have none; `None` if its structures have no arcs.
        choices: Of how many it chooses one, for each word or for the sentence; `None` if it does not.

    Example:
        >>> from types import SimpleNamespace
        >>> tagger: Source = SimpleNamespace(name="tagger", arc_labels=None, choices=7, arcs=None)
        >>> Embedded(EmbeddedSettings(name="embedded", dim=5), 4, 3, tagger).outputs
        9
    """

    @property
    def name(self) -> str: ...

    @property
    def arc_labels(self) -> int | None: ...

    @property
    def choices(self) -> int | None: ...

    def arcs(self, z: Parts) -> tuple[Parts, Parts | None]:
        """Arcs i -> j, and the same arcs by label if they have labels."""
        ...


class ChosenHeads(NamedTuple):
    """Trees as one head for each word: all that there is to read of them where nothing is learned.

    Attributes:
        heads: The head of each position; -1 where there is none, as for the root.
        labels: The label of its arc, if arcs have labels; -1 where there is none.

    Example:
        >>> ChosenHeads(torch.tensor([[-1, 2, 0]])).labels is None
        True
    """

    heads: Int[Tensor, "batch n"]
    labels: Int[Tensor, "batch n"] | None = None


class ReaderSettings(Values):
    """Which reader; those of a reader that has options are a subclass.

    Attributes:
        name: A key of `READERS`.

    Example:
        >>> ReaderSettings(name="heads").name
        'heads'
    """

    name: str


def reader_settings(table: Any) -> ReaderSettings:
    """The settings of a reader from its name, or a table with its name and options.

    Example:
        >>> reader_settings("roles"), reader_settings({"name": "rounds", "rounds": 7}).rounds
        (ReaderSettings(name='roles'), 7)
    """
    if isinstance(table, ReaderSettings):
        return table
    if isinstance(table, str):
        table = {"name": table}
    if not isinstance(table, Mapping) or "name" not in table:
        raise ValueError(f"a reader is its name, or a table with its name and options, not {table!r}")
    settings = READERS.find(table["name"]).Settings
    check_options(settings, table)
    return settings.model_validate(table)


class AbstractReader(nn.Module, abc.ABC):
    """States of words, and what the structure over them adds.

    A new reader is one subclass, registered under its name.

    Args:
        settings: Its options.
        inputs: Length of a state.
        width: How long the stage that reads would like its features.
        source: The stage whose structures are read.

    Attributes:
        outputs: Length of a state afterwards.

    Example:
        >>> class Children(AbstractReader):                     # `@READERS.register("children")` above it
        ...     def __init__(self, settings, inputs, width, source):
        ...         super().__init__(settings, inputs, width, source)
        ...         self.outputs = 2 * inputs
        ...     def forward(self, states, z, source):
        ...         return torch.cat((states, source.arcs(z)[0] @ states), -1)
        >>> from types import SimpleNamespace
        >>> trees = SimpleNamespace(name="syntax", arc_labels=0, choices=None, arcs=lambda z: (z, None))
        >>> read = Children(ReaderSettings(name="children"), 4, 3, trees)
        >>> read(torch.zeros(1, 5, 4), torch.zeros(1, 5, 5), trees).shape
        torch.Size([1, 5, 8])
    """

    Settings: ClassVar[type[ReaderSettings]] = ReaderSettings

    pools: ClassVar[bool] = False
    """Whether the root's state then stands for the whole sentence."""

    outputs: int

    @abc.abstractmethod
    def __init__(self, settings: Any, inputs: int, width: int, source: Source) -> None:
        super().__init__()

    @abc.abstractmethod
    def forward(self, states: Float[Tensor, "batch n d"], z: Parts, source: Source) -> Float[Tensor, "batch n h"]:
        """The states of all positions, the root included, after a look at the structure."""

    def after_heads(self, states: Float[Tensor, "batch n d"], chosen: ChosenHeads) -> Float[Tensor, "batch n h"] | None:
        """The same by one head for each word, where that is a shorter way; none unless it says so."""
        return None


class HeadSettings(ReaderSettings):
    """How long the vector of a word's relation to its head is; with 0 relations are not read."""

    relation_dim: OptionalSize = 0


@final
@READERS.register("heads")
class Heads(AbstractReader):
    r"""Each word's state beside that of its head (Eq. 7), and beside a vector for its relation to it, if asked for.

    $$[h_j ; \textstyle\sum_i z_{ij} h_i ; \sum_{i\ell} z_{ij\ell} e_\ell]$$

    Example:
        >>> from types import SimpleNamespace
        >>> trees = SimpleNamespace(name="syntax", arc_labels=0, choices=None, arcs=lambda z: (z, None))
        >>> Heads(HeadSettings(name="heads"), 4, 3, trees).outputs
        8
        >>> labelled = SimpleNamespace(name="syntax", arc_labels=7, choices=None, arcs=lambda z: (z.sum(-1), z))
        >>> read = Heads(HeadSettings(name="heads", relation_dim=5), 4, 3, labelled)
        >>> read(torch.zeros(1, 6, 4), torch.zeros(1, 6, 6, 7), labelled).shape
        torch.Size([1, 6, 13])
    """

    Settings = HeadSettings

    def __init__(self, settings: HeadSettings, inputs: int, width: int, source: Source) -> None:
        super().__init__(settings, inputs, width, source)
        labels, dim = _require_arcs(source, "heads"), settings.relation_dim
        if dim and not labels:
            raise ValueError(
                f"relation_dim = {dim} reads relations, and the arcs of the stage {source.name} have none; "
                "set labelled = true there, or leave relation_dim out."
            )
        self.relations = nn.Parameter(torch.empty(labels, dim)) if dim else None
        if self.relations is not None:
            bound = (3 / dim) ** 0.5
            nn.init.uniform_(self.relations, -bound, bound)
        self.outputs = 2 * inputs + dim

    def forward(self, states: Float[Tensor, "batch n d"], z: Parts, source: Source) -> Float[Tensor, "batch n h"]:
        """The states, twice as long, and the vectors of relations."""
        arcs, labelled = source.arcs(z)
        beside = head_features(states, arcs)
        if self.relations is None or labelled is None:
            return beside
        return torch.cat((beside, labelled.sum(-3) @ self.relations), -1)

    def after_heads(self, states: Float[Tensor, "batch n d"], chosen: ChosenHeads) -> Float[Tensor, "batch n h"] | None:
        """Looked up, and not summed over all words that could have been the head."""
        if self.relations is not None and chosen.labels is None:
            return None
        first = torch.arange(len(states), device=states.device).unsqueeze(-1) * states.shape[1]
        found = [states, _rows(states.flatten(0, 1), chosen.heads, first)]
        if self.relations is not None and chosen.labels is not None:
            found.append(_rows(self.relations, chosen.labels, 0))
        return torch.cat(found, -1)


def _rows(table: Float[Tensor, "rows d"], places: Int[Tensor, "batch n"], first: Tensor | int) -> Tensor:
    """The rows at some places, counted from `first`; zeros where a place is negative."""
    rows = table.index_select(0, (places.clamp(min=0) + first).flatten()).view(*places.shape, -1)
    return rows.masked_fill((places < 0).unsqueeze(-1), 0)


@final
@READERS.register("roles")
class Roles(AbstractReader):
    """Each word beside the average of its heads and of the roles it plays for them.

    See `spigot_nlp.wires.readers.HeadReader`.

    Example:
        >>> from types import SimpleNamespace
        >>> trees = SimpleNamespace(name="syntax", arc_labels=0, choices=None, arcs=lambda z: (z, None))
        >>> Roles(ReaderSettings(name="roles"), 4, 3, trees)(torch.zeros(1, 5, 4), torch.zeros(1, 5, 5), trees).shape
        torch.Size([1, 5, 3])
    """

    def __init__(self, settings: ReaderSettings, inputs: int, width: int, source: Source) -> None:
        super().__init__(settings, inputs, width, source)
        self.read = HeadReader(inputs, width, _require_arcs(source, "roles"))
        self.outputs = width

    def forward(self, states: Float[Tensor, "batch n d"], z: Parts, source: Source) -> Float[Tensor, "batch n h"]:
        """Features of all positions."""
        return self.read(states, *source.arcs(z))


class RoundSettings(ReaderSettings):
    """How many rounds of messages."""

    rounds: Annotated[Layers, Field(gt=0)] = 5


@final
@READERS.register("rounds")
class Rounds(AbstractReader):
    """Messages from arguments to heads, round by round, after which the root decides; see `RoundReader`.

    Example:
        >>> Rounds.pools
        True
    """

    Settings = RoundSettings
    pools = True

    def __init__(self, settings: RoundSettings, inputs: int, width: int, source: Source) -> None:
        super().__init__(settings, inputs, width, source)
        _require_arcs(source, "rounds")
        self.read = RoundReader(inputs, width, settings.rounds)
        self.outputs = width

    def forward(self, states: Float[Tensor, "batch n d"], z: Parts, source: Source) -> Float[Tensor, "batch n h"]:
        """States of all positions after the last round."""
        return self.read(states, source.arcs(z)[0])


class EmbeddedSettings(ReaderSettings):
    """How long the vector of a choice is."""

    dim: Size = 50


@final
@READERS.register("embedded")
class Embedded(AbstractReader):
    r"""Each word's state beside a vector for what was chosen for it: $[h_i ; \sum_k z_{ik} e_k]$.

    What was chosen for the whole sentence stands beside every word.

    Example:
        >>> from types import SimpleNamespace
        >>> tags = SimpleNamespace(name="tags", arc_labels=None, choices=7)
        >>> read = Embedded(EmbeddedSettings(name="embedded", dim=5), 4, 3, tags)
        >>> read(torch.zeros(1, 6, 4), torch.zeros(1, 6, 7), tags).shape
        torch.Size([1, 6, 9])
    """

    Settings = EmbeddedSettings

    def __init__(self, settings: EmbeddedSettings, inputs: int, width: int, source: Source) -> None:
        super().__init__(settings, inputs, width, source)
        if source.choices is None:
            raise ValueError(f"the reader 'embedded' reads choices, and the stage {source.name} makes none; use heads.")
        self.vectors = nn.Parameter(torch.empty(source.choices, settings.dim))
        bound = (3 / settings.dim) ** 0.5
        nn.init.uniform_(self.vectors, -bound, bound)
        self.outputs = inputs + settings.dim

    def forward(self, states: Float[Tensor, "batch n d"], z: Parts, source: Source) -> Float[Tensor, "batch n h"]:
        """The states, longer by a vector."""
        chosen = z @ self.vectors
        if chosen.ndim < states.ndim:
            chosen = chosen.unsqueeze(1).expand(-1, states.shape[1], -1)
        return torch.cat((states, chosen), -1)


def _require_arcs(source: Source, reader: str) -> int:
    if source.arc_labels is None:
        raise ValueError(f"the reader {reader!r} reads arcs, and the stage {source.name} has none; use embedded.")
    return source.arc_labels
