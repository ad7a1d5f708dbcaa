"""Several semantic graphs of a sentence at once: shared and own encoders, and parts that join their arcs (Freda)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Annotated, Any, Literal, NamedTuple, cast, final

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

import spigot
from spigot import JointGraphs
from spigot.types import Parts, Values
from spigot_nlp.annotations.formalisms import Combination, Formalisms, GoldFormalisms
from spigot_nlp.annotations.graphs import GoldGraph, Graphs, graph_parts
from spigot_nlp.batches.batch import Batch, Encoded
from spigot_nlp.data.sentence import Arc
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.nn.scorers import PairScorer, WordScorer
from spigot_nlp.stages.graph_scores import Scored, dense, dense_parts, rows_of
from spigot_nlp.stages.graphs import PRUNER, PrunedGraphSettings
from spigot_nlp.stages.joint_likelihood import LARGEST, Block, joint_log_loss, marginals
from spigot_nlp.stages.pruning import ArcPruner, SeenArcs
from spigot_nlp.stages.stage import STAGES, AbstractStage, Evidence, Helper, HelperPlan, Surroundings
from spigot_nlp.values import Positive, Size, Texts
from spigot_nlp.wires.estimators import EstimatorSettings


class GraphTask(nn.Module):
    """Scorers of predicates, arcs and labels, and what training has seen between tags.

    Args:
        settings: Those of the stage.
        annotation: The graphs.
        vocab: The indices.
        width: Length of a state.
    """

    def __init__(self, settings: Any, annotation: Graphs, vocab: Vocab, width: int) -> None:
        super().__init__()
        self.seen = SeenArcs(settings.pruning, vocab, annotation)
        self.predicates = WordScorer(width, settings.mlp, settings.mlp_layers)
        self.pairs = PairScorer(width, settings.mlp, settings.mlp_layers)
        self.labels = PairScorer(width, settings.mlp, settings.mlp_layers, outputs=len(annotation.roles))

    def surviving(self, batch: Batch, pruner: ArcPruner | None, gold: GoldGraph | None) -> Bool[Tensor, "batch n n"]:
        """The arcs that pruning leaves, and gold arcs if they are to be kept."""
        surviving = self.seen(batch)
        if pruner is not None:
            surviving = pruner(batch, surviving)
        if gold is not None:
            surviving[gold.arcs[:, :3].unbind(-1)] = True
        return surviving

    def score(
        self,
        batch: Batch,
        states: Float[Tensor, "batch n d"],
        surviving: Bool[Tensor, "batch n n"],
        gold: GoldGraph | None,
    ) -> tuple[Scored, Float[Tensor, "pairs h"], Float[Tensor, "pairs h"]]:
        """Scores of what survives, and the hidden layers that those of arcs and of labels come from."""
        pairs = surviving.nonzero()
        possible = self.seen.labels(batch, pairs)
        if gold is not None:
            possible[rows_of(pairs, gold.arcs, *surviving.shape[:2]), gold.arcs[:, 3]] = True
        arcs, labels = self.pairs.hidden_at(states, pairs), self.labels.hidden_at(states, pairs)
        scored = Scored(
            self.predicates(states), pairs, self.pairs.out(arcs).squeeze(-1), self.labels.out(labels), possible
        )
        return scored, arcs, labels

    @torch.no_grad()
    def pruned(self, batch: Batch, pruner: ArcPruner | None, gold: GoldGraph) -> tuple[int, int, int, int]:
        """What pruning leaves of a batch: arcs, labelled parts, gold arcs and those of them that are left."""
        kept = self.surviving(batch, pruner, None)
        pairs, role = gold.arcs[:, :3], gold.arcs[:, 3:]
        allowed = self.seen.labels(batch, pairs).gather(-1, role).squeeze(-1)
        parts = int(self.seen.labels(batch, kept.nonzero()).sum())
        return int(kept.sum()), parts, len(pairs), int((kept[pairs.unbind(-1)] & allowed).sum())


Groups = Mapping[tuple[int, ...], Int[Tensor, "parts tasks"]]
"""The labels that labelled parts join, by the tasks that they are of."""


def crossed_values(structure: JointGraphs, groups: Groups, parts: Sequence[Tensor]) -> Tensor:
    """Whether the parts that join arcs are on, or exist: those whose arcs all are, or do.

    Args:
        structure: The graphs.
        groups: The labels of labelled parts.
        parts: The graphs, or their masks, in their own layouts.
    """
    return torch.cat([_product(parts, *channels) for channels in _channels(structure, groups)], -1)


def common_pairs(
    sets: Iterable[tuple[int, ...]], tasks: Sequence[Scored]
) -> Iterator[tuple[tuple[int, ...], Int[Tensor, " common"], tuple[Int[Tensor, " common"], ...]]]:
    """For sets of graphs, the places of pairs that all of them have, and where these stand in the list of each."""
    batch, size = tasks[0].predicates.shape
    row_of = torch.full((len(tasks), batch * size * size), -1, device=tasks[0].pairs.device)
    for task, scored in enumerate(tasks):
        row_of[task, scored.places] = torch.arange(len(scored.pairs), device=row_of.device)
    for joint in sets:
        places = (row_of[list(joint)] >= 0).all(0).nonzero().squeeze(-1)
        yield joint, places, tuple(row_of[task, places] for task in joint)


def dense_blocks(
    blocks: Sequence[Block], tasks: Sequence[Scored]
) -> tuple[Float[Tensor, "batch n n k"], Bool[Tensor, "batch n n k"]]:
    """The scores of parts that join arcs as a structure lays them out, and which of them exist."""
    batch, size = tasks[0].predicates.shape
    none = tasks[0].arcs.new_zeros(batch, size, size, 0)
    scores, exist = [none], [none.bool()]
    for block in blocks:
        there = torch.ones_like(block.arcs, dtype=torch.bool)
        scores.append(dense(block.arcs.unsqueeze(-1), block.places, batch, size))
        exist.append(dense(there.unsqueeze(-1), block.places, batch, size))
    for block in blocks:
        there = torch.ones_like(block.labelled, dtype=torch.bool)
        for task, row, label in zip(block.tasks, block.rows, block.joined.unbind(-1), strict=True):
            there &= tasks[task].possible.index_select(0, row).index_select(1, label)
        scores.append(dense(block.labelled, block.places, batch, size))
        exist.append(dense(there, block.places, batch, size))
    return torch.cat(scores, -1), torch.cat(exist, -1)


def _channels(structure: JointGraphs, groups: Groups) -> list[tuple[Sequence[int], Int[Tensor, "parts tasks"]]]:
    """The tasks of each block of parts, and the channels that each part joins."""
    arcs = [(tasks, torch.zeros(1, len(tasks), dtype=torch.long)) for tasks in structure.arcs]
    return [*arcs, *((tasks, 1 + groups[tasks]) for tasks in structure.arcs if tasks in groups)] or [
        ((0,), torch.zeros(0, 1, dtype=torch.long))
    ]


def _product(parts: Sequence[Tensor], tasks: Sequence[int], channels: Int[Tensor, "parts tasks"]) -> Tensor:
    """Where all of some channels are on; predicates, on the diagonal, are no arcs."""
    arcs = ~torch.eye(parts[0].shape[-2], dtype=torch.bool, device=parts[0].device).unsqueeze(-1)
    found = arcs if parts[0].dtype == torch.bool else arcs.to(parts[0].dtype)
    for task, channel in zip(tasks, channels.to(parts[0].device).unbind(-1), strict=True):
        found = found * parts[task].index_select(-1, channel)
    return found


class LowRank(nn.Module):
    r"""How well arcs of several graphs between the same two words go together.

    For tasks $T$ and a pair of words, with $\phi_t$ the last hidden layer of a task's scorer and $\psi_t$ its output
    row (of a label, if the part is labelled),

    $$s_T = \sum_{q=1}^r \lambda_q \prod_{t\in T} (U_t\phi_t)_q\,(V_t\psi_t)_q .$$

    The matrices are the same in pairs and triples of tasks. The weights $\lambda$ start at zero: what is learned first
    is learned of each graph by itself, and the parts that join arcs set out from there. What belongs to words and what
    belongs to labels is multiplied apart, so that all labels of all pairs are one matrix product.

    Args:
        tasks: How many graphs there are.
        hidden: Units of the scorers' hidden layers.
        rank: The rank $r$.

    Example:
        >>> cross, scorers = LowRank(2, hidden=4, rank=3), [PairScorer(5, 4, outputs=k) for k in (6, 7)]
        >>> words = cross.words([torch.randn(9, 4), torch.randn(8, 4)])
        >>> labels = cross.labels(scorers)
        >>> pairs = [torch.tensor([0, 8]), torch.tensor([3, 7])]                 # two pairs that both graphs have
        >>> cross.scores((0, 1), words, pairs, labels, torch.tensor([[0, 1], [5, 6], [2, 2]])).shape
        torch.Size([2, 3])

    References:
        Peng, Thomson, Smith (2017), Deep multitask learning for semantic dependency parsing, §5.
    """

    def __init__(self, tasks: int, hidden: int, rank: int) -> None:
        super().__init__()
        layers = [nn.Linear(hidden, rank, bias=False) for _ in range(2 * tasks)]
        for layer in layers:
            nn.init.xavier_uniform_(layer.weight)
        self.weight = nn.Parameter(torch.zeros(rank))
        self.of_words, self.of_labels = nn.ModuleList(layers[:tasks]), nn.ModuleList(layers[tasks:])

    def words(self, hidden: Sequence[Float[Tensor, "pairs h"]]) -> list[Float[Tensor, "pairs r"]]:
        r"""$U_t\phi_t$ of the pairs of each task."""
        return [layer(phi) for layer, phi in zip(self.of_words, hidden, strict=True)]

    def labels(self, scorers: Sequence[PairScorer]) -> list[Float[Tensor, "labels r"]]:
        r"""$V_t\psi_t$ of the labels of each task."""
        return [layer(scorer.out.weight) for layer, scorer in zip(self.of_labels, scorers, strict=True)]

    def scores(
        self,
        tasks: Sequence[int],
        words: Sequence[Float[Tensor, "pairs r"]],
        rows: Sequence[Int[Tensor, " common"]],
        labels: Sequence[Float[Tensor, "labels r"]],
        joined: Int[Tensor, "parts tasks"],
    ) -> Float[Tensor, "common parts"]:
        """Scores of some parts on the pairs that some tasks have in common.

        Args:
            tasks: The tasks.
            words: What `words` gave.
            rows: Where the common pairs stand among those of each of the tasks.
            labels: What `labels` gave.
            joined: The labels that each part joins, one of each of the tasks.
        """
        rows_of = zip(tasks, rows, strict=True)
        labels_of = zip(tasks, joined.unbind(-1), strict=True)
        left = prod((words[task].index_select(0, row) for task, row in rows_of), start=self.weight)
        right = prod((labels[task].index_select(0, label) for task, label in labels_of), start=_one)
        return left @ right.mT


_one = torch.ones(())


Cost = Annotated[float, Field(ge=0)]


class FormalismSettings(PrunedGraphSettings):
    """A parser into several formalisms.

    Attributes:
        graphs: The names of the graphs, the most important first.
        own: Whether each has an encoder of its own beside the shared one, over the same embeddings (Freda).
        order: Of how many graphs arcs are scored together: 1, each by itself; 2, pairs; 3, pairs and triples.
        rank: The rank of the tensors that score them.
        minimum: How often labels must have met on an arc in training to be scored together.
        loss: The joint hinge with costs, the same without costs (`perceptron`), or `log`: the log loss of all graphs
            together, without determinism; of up to three, unless `order` is 1.
        decoding: As for one graph; `best` and `marginals` are those of all graphs together.
        costs: Costs of a labelled arc too many and of one missed, for graphs where they are others, by name.

    Example:
        >>> settings = FormalismSettings(annotation="formalisms", graphs=("dm", "psd"), costs={"psd": (0.3, 0.7)})
        >>> settings.order, settings.rank, settings.minimum
        (3, 100, 30)
    """

    graphs: Texts = ()
    own: bool = True
    order: Annotated[int, Field(ge=1, le=3)] = 3
    rank: Size = 100
    minimum: Positive = 30
    loss: Literal["hinge", "perceptron", "log"] = "hinge"  # pyright: ignore[reportIncompatibleVariableOverride]
    costs: dict[str, tuple[Cost, Cost]] = Field(default={})

    @model_validator(mode="after")
    def _several(self) -> "FormalismSettings":
        if len(self.graphs) == 1 or len(set(self.graphs)) < len(self.graphs):
            raise ValueError(f"graphs is {list(self.graphs)}; name two different graphs or more")
        if self.graphs and (strange := set(self.costs) - set(self.graphs)):
            raise ValueError(f"costs names {min(strange)!r}, which is none of {', '.join(self.graphs)}")
        if self.loss == "log" and self.order > 1 and len(self.graphs) > LARGEST:
            raise ValueError(
                f"loss = 'log' with order {self.order} sums over the labels of all graphs together, of up to {LARGEST} "
                f"graphs; there are {len(self.graphs)}: use loss = 'hinge', or order = 1"
            )
        if self.latent:
            raise ValueError("graphs of several formalisms need data; latent graphs are annotation = 'graphs'")
        return self


class Joint(NamedTuple):
    """What a batch is scored with.

    Attributes:
        tasks: The surviving parts of each graph and their scores.
        blocks: The parts that join arcs.
    """

    tasks: list[Scored]
    blocks: list[Block]


@final
@STAGES.register("formalisms")
class FormalismStage(AbstractStage[FormalismSettings, Formalisms, spigot.JointGraphs]):
    """Scores what pruning leaves of each graph, and how well arcs of several go together.

    Attributes:
        tasks: The scorers of each graph.
        pruners: The small parsers that decide what is scored; none if none is learned.
        branches: The encoders of single graphs; none if all is shared.

    Example:
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Graph, Sentence
        >>> from spigot_nlp.data.vocab import Vocab
        >>> dm, psd = Graph.of([Arc(2, 1, "ARG1")], tops=[2]), Graph.of([Arc(2, 1, "ACT")], tops=[2])
        >>> rain = Sentence(("Rain", "fell"), annotations={"dm": dm, "psd": psd})
        >>> settings = FormalismSettings(annotation="formalisms", graphs=("dm", "psd"), minimum=1)
        >>> both, vocab = Formalisms.learn("formalisms", [rain], settings), Vocab.of([rain])
        >>> parser = FormalismStage("semantics", settings, both, Surroundings(vocab))
        >>> batch = collate([encode(rain, vocab, {"semantics": both})], {"semantics": both})
        >>> parser.loss(batch).shape, parser.evidence(batch).scores.shape     # 3 + 3, one for arcs, TOP/TOP, ARG1/ACT
        (torch.Size([1]), torch.Size([1, 3, 3, 9]))
    """

    Settings = FormalismSettings

    def __init__(self, name: str, settings: FormalismSettings, annotation: Formalisms, around: Surroundings) -> None:
        for graphs in annotation.tasks:
            if not graphs.roles:
                raise ValueError(
                    f"None of the training sentences of {name} has a {graphs.name} graph with arcs or tops; give files "
                    f"that have them, or leave {graphs.name} out of {name}.graphs."
                )
        super().__init__(name, settings, annotation, around)
        number = len(annotation.tasks)
        self.branches = nn.ModuleList(self.encoder.branch() for _ in range(number if settings.own else 0))
        width = self.width + (self.encoder.outputs if settings.own else 0)
        self.tasks = nn.ModuleList(GraphTask(settings, graphs, around.vocab, width) for graphs in annotation.tasks)
        learned = number if self.helper_plans(settings) else 0
        self.pruners = nn.ModuleList(ArcPruner(settings.pruning, around.vocab, around.run) for _ in range(learned))
        self.structure = _structure(annotation, settings)
        self.groups = _groups(self.structure.labelled)
        several = bool(self.structure.arcs)
        self.arc_parts = LowRank(number, settings.mlp, settings.rank) if several else None
        self.label_parts = LowRank(number, settings.mlp, settings.rank) if several else None

    @classmethod
    def refusal(cls, settings: FormalismSettings, estimator: EstimatorSettings) -> str:
        """Marginals are out of reach."""
        if estimator.name == "attention":
            return "system = 'attention' needs marginals, and those of several graphs are out of reach; use spigot"
        return ""

    def evidence(self, batch: Batch, read: Sequence[Parts] = (), *, limits: Any = None) -> Evidence:
        """Scores of all parts in the structure's layout.

        Where marginals decode, labelled arcs have what they are worth, and nothing joins the graphs any more.
        """
        joint = self._scored(batch, read, None, noisy=False)
        if self.settings.decoding == "best":
            return self._parts(batch, joint, None)
        likely = marginals(joint.tasks, joint.blocks, batch.lengths)
        threshold = self.settings.threshold
        worth = [scored.worth(found, threshold) for scored, found in zip(joint.tasks, likely, strict=True)]
        scores, mask = self._parts(batch, Joint(worth, joint.blocks), None)
        crossed = torch.arange(scores.shape[-1], device=scores.device) >= self.structure.layout.first[-1]
        return Evidence(scores.masked_fill(crossed, 0), mask & ~crossed)

    def loss(self, batch: Batch, read: Sequence[Parts] = ()) -> Values:
        """The joint loss of each sentence's graphs, over what survives; gold arcs do, in training."""
        gold: GoldFormalisms = self.gold(batch)
        joint = self._scored(batch, read, gold if batch.seeds is not None else None, noisy=True)
        if self.settings.loss == "log":
            return joint_log_loss(joint.tasks, joint.blocks, batch.lengths, gold)
        right = self._right(gold, joint)
        scores, mask = self._parts(batch, joint, gold.present)
        if self.settings.loss == "perceptron":
            return spigot.perceptron(scores, right, self.structure, mask=mask)
        positive, negative = self._costs(scores)
        return spigot.structured_hinge(
            scores, right, self.structure, mask=mask, false_positive=positive, false_negative=negative
        )

    def found(self, z: Parts, evidence: Evidence | None, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """The graphs by name."""
        return self.annotation.decode(z, lengths)

    def certainty(self, evidence: Evidence) -> dict[str, Bool[Tensor, " batch"]]:
        """For which sentences the relaxation was whole, and the answer is proven to be the best."""
        if not self.structure.arcs or self.settings.decoding == "marginals":
            return {}
        solved = self.structure.solve(*evidence)
        return {"integral": solved.integral, "optimal": solved.optimal}

    @property
    def arc_labels(self) -> int:
        """The roles of all graphs."""
        return sum(graphs.labels for graphs in self.structure.tasks)

    def part(self, place: Sequence[int]) -> Arc:
        """An arc with its role, or without; a predicate is an arc to itself; the labels of a part that joins arcs."""
        head, argument, channel = place
        for graphs in self.annotation.tasks:
            if channel <= len(graphs.roles):
                return Arc(head, argument, f"{graphs.name}:{graphs.roles[channel - 1] if channel else ''}")
            channel -= 1 + len(graphs.roles)
        tasks = self.annotation.tasks
        if channel < len(self.structure.arcs):
            return Arc(head, argument, "+".join(tasks[task].name for task in self.structure.arcs[channel]))
        joined = self.structure.labelled[channel - len(self.structure.arcs)]
        return Arc(head, argument, "+".join(f"{tasks[task].name}:{tasks[task].roles[k]}" for task, k in joined))

    def arcs(self, z: Parts) -> tuple[Parts, Parts]:
        """The arcs of all graphs, counted as often as they occur, and with their roles."""
        tasks, _ = self.structure.unpack(z)
        several = [graphs.unpack(part) for graphs, part in zip(self.structure.tasks, tasks, strict=True)]
        arcs = torch.stack([arcs for _, arcs, _ in several]).sum(0)
        return arcs, torch.cat([labelled for _, _, labelled in several], -1)

    @classmethod
    def helper_plans(cls, settings: FormalismSettings) -> dict[str, HelperPlan]:
        """The pruners, if any are learned."""
        return {PRUNER: HelperPlan(settings.pruning.epochs)} if settings.pruning.learned else {}

    def helpers(self) -> dict[str, Helper]:
        """The pruners, if any are learned, as one."""
        return {PRUNER: Helper(self.pruners, self.settings.pruning.optimiser)} if len(self.pruners) else {}

    def helper_loss(self, helper: str, batch: Batch) -> Values:
        """The losses of the pruners, each over the sentences that have its graph."""
        if not len(self.pruners):
            return super().helper_loss(helper, batch)
        gold: GoldFormalisms = self.gold(batch)
        losses = [
            self._pruner(task).loss(batch, graphs, self._task(task).seen(batch))
            for task, graphs in enumerate(gold.graphs)
        ]
        return torch.stack(losses, -1).masked_fill(~gold.present, 0).sum(-1)

    @torch.no_grad()
    def helper_scores(self, helper: str, batches: Iterable[Batch]) -> dict[str, float]:
        """What pruning leaves: labelled parts and arcs a token of one graph, and its recall."""
        totals, tokens = torch.zeros(4), 0
        for batch in batches:
            gold: GoldFormalisms = self.gold(batch)
            tokens += int(batch.lengths.sum()) * len(self.tasks)
            for task, graphs in enumerate(gold.graphs):
                totals += torch.tensor(self._task(task).pruned(batch, self._pruner(task), graphs))
        arcs, parts, wanted, found = totals.tolist()
        return {
            "arcs_a_token": arcs / max(tokens, 1),
            "parts_a_token": parts / max(tokens, 1),
            "recall": 100 * found / max(wanted, 1),
        }

    def prepare(self, sentences: Sequence[Encoded]) -> None:
        """Fill the tables of what training has seen."""
        for task in range(len(self.tasks)):
            known = [s._replace(gold={self.name: s.gold[self.name][task]}) for s in sentences if self.name in s.gold]
            self._task(task).seen.learn(self.name, [s for s in known if s.gold[self.name] is not None])

    def _task(self, task: int) -> GraphTask:
        return cast(GraphTask, self.tasks[task])

    def _pruner(self, task: int) -> ArcPruner:
        return cast(ArcPruner, self.pruners[task])

    def _states(self, batch: Batch, read: Sequence[Parts], *, noisy: bool) -> list[Float[Tensor, "batch n d"]]:
        """The states that each graph is scored from; what other stages found is read by the shared encoder."""
        shared, *own = self.encoder.states_of(list(self.branches), batch, noisy=noisy)
        shared = self.after_reading(shared, read)
        return [torch.cat((shared, states), -1) for states in own] or [shared] * len(self.tasks)

    def _scored(self, batch: Batch, read: Sequence[Parts], kept: GoldFormalisms | None, *, noisy: bool) -> Joint:
        tasks, arcs, labels = [], [], []
        for task, states in enumerate(self._states(batch, read, noisy=noisy)):
            gold = None if kept is None else kept.graphs[task]
            pruner = self._pruner(task) if len(self.pruners) else None
            surviving = self._task(task).surviving(batch, pruner, gold)
            scored, *hidden = self._task(task).score(batch, states, surviving, gold)
            tasks.append(scored)
            arcs.append(hidden[0])
            labels.append(hidden[1])
        return Joint(tasks, self._crossed(tasks, arcs, labels))

    def _crossed(
        self,
        tasks: Sequence[Scored],
        arcs: Sequence[Float[Tensor, "pairs h"]],
        labels: Sequence[Float[Tensor, "pairs h"]],
    ) -> list[Block]:
        """The parts that join arcs, where all graphs concerned have the pair."""
        if self.arc_parts is None or self.label_parts is None:
            return []
        scorers = [self._task(task) for task in range(len(tasks))]
        arc_words, arc_rows = self.arc_parts.words(arcs), self.arc_parts.labels([task.pairs for task in scorers])
        words, rows = self.label_parts.words(labels), self.label_parts.labels([task.labels for task in scorers])
        blocks = []
        for joint, places, common in common_pairs(self.structure.arcs, tasks):
            none = torch.zeros(1, len(joint), dtype=torch.long, device=places.device)
            known = self.groups.get(joint, none[:0]).to(places.device)
            whole = self.arc_parts.scores(joint, arc_words, common, arc_rows, none).squeeze(-1)
            labelled = self.label_parts.scores(joint, words, common, rows, known)
            blocks.append(Block(joint, places, common, whole, known, labelled))
        return blocks

    def _parts(self, batch: Batch, joint: Joint, present: Bool[Tensor, "batch tasks"] | None) -> Evidence:
        """All parts in the structure's layout, and which exist; nothing of graphs that are not there."""
        scores, masks = zip(*(dense_parts(scored, batch.lengths) for scored in joint.tasks), strict=True)
        crossed, exist = dense_blocks(joint.blocks, joint.tasks)
        if present is not None and not present.all():
            masks = [mask & present[:, task, None, None, None] for task, mask in enumerate(masks)]
            exist = exist & crossed_values(self.structure, self.groups, masks)
        return Evidence(self.structure.pack(scores, crossed), self.structure.pack(masks, exist))

    def _right(self, gold: GoldFormalisms, joint: Joint) -> Parts:
        dtype = joint.tasks[0].arcs.dtype
        graphs: list[GoldGraph] = list(gold.graphs)
        parts = [
            graph_parts(one, structure, dtype) for one, structure in zip(graphs, self.structure.tasks, strict=True)
        ]
        return self.structure.pack(parts, crossed_values(self.structure, self.groups, parts))

    def _costs(self, scores: Parts) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Costs of each channel: those of labelled arcs, and none of all others."""
        costs = scores.new_zeros(2, scores.shape[-1])
        start = 0
        for name, graphs in zip(self.settings.graphs, self.structure.tasks, strict=True):
            usual = self.settings.false_positive, self.settings.false_negative
            own = scores.new_tensor(self.settings.costs.get(name, usual))
            costs[:, start + 1 : start + 1 + graphs.labels] = own.unsqueeze(-1)
            start += 1 + graphs.labels
        return costs[0], costs[1]


def _structure(annotation: Formalisms, settings: FormalismSettings) -> spigot.JointGraphs:
    tasks = tuple(
        spigot.SemanticGraphs(len(graphs.roles), graphs.deterministic if settings.determinism else ())
        for graphs in annotation.tasks
    )
    sizes = range(2, min(settings.order, len(tasks)) + 1)
    arcs = tuple(joint for size in sizes for joint in combinations(range(len(tasks)), size))
    known = {joint: place for place, joint in enumerate(arcs)}

    def place(labels: Combination) -> tuple[Any, ...]:
        return known[tuple(task for task, _ in labels)], labels

    return spigot.JointGraphs(tasks, arcs, tuple(sorted(annotation.combinations, key=place)) if arcs else ())


def _groups(labelled: Sequence[Combination]) -> dict[tuple[int, ...], Tensor]:
    """The labels that are joined, by the tasks that they are of."""
    groups: dict[tuple[int, ...], list[list[int]]] = {}
    for part in labelled:
        groups.setdefault(tuple(task for task, _ in part), []).append([label for _, label in part])
    return {tasks: torch.tensor(labels) for tasks, labels in groups.items()}
