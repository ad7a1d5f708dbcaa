"""Semantic dependency parser: scores of predicates, arcs and labelled arcs, and the best graph (NeurboParser)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, Literal, final

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor

import spigot
from spigot import SemanticGraphs, kernels
from spigot.kernels import kernel_threads
from spigot.types import Mask, Parts, Values
from spigot_nlp.annotations.graphs import GoldGraph, Graphs, graph_parts
from spigot_nlp.batches.batch import Batch, Encoded
from spigot_nlp.data.sentence import Arc
from spigot_nlp.nn.biaffine import Biaffine, WholeSides
from spigot_nlp.nn.quantised import WHOLE, WIDEST, check_range
from spigot_nlp.nn.scorers import PairScorer, WordScorer
from spigot_nlp.stages.alternatives import ArcScore, arc_alternatives
from spigot_nlp.stages.constraints import Constraints, Infeasible, checked_demands, role_of
from spigot_nlp.stages.graph_scores import Scored, dense_parts, graph_log_loss, graph_marginals, rows_of
from spigot_nlp.stages.pruning import ArcPruner, Pruning, SeenArcs
from spigot_nlp.stages.stage import (
    STAGES,
    AbstractDecision,
    AbstractStage,
    Evidence,
    Found,
    Helper,
    HelperPlan,
    StageSettings,
    Surroundings,
)
from spigot_nlp.values import Optimiser, Rate, Size
from spigot_nlp.wires.estimators import EstimatorSettings

MOST_ROLES = 64
"""As many roles as there are bits in the number that says which of them two words may have."""


@final
class GraphDecision(AbstractDecision):
    """Graphs as the role of each arc.

    Args:
        annotation: What they are called.
        roles: The role of every arc, -1 where there is none.

    Example:
        >>> roles = torch.tensor([[[-1, -1, 0], [-1, -1, -1], [-1, 1, -1]]], dtype=torch.int32)   # 0 -> 2 -> 1
        >>> decision = GraphDecision(Graphs("graph", ("TOP", "ARG1")), roles)
        >>> decision.found([2])[0]["graph"].arcs
        (Arc(predicate=2, argument=1, role='ARG1'),)
        >>> decision.parts()[0, 2, 1].tolist()
        [1.0, 0.0, 1.0]
    """

    def __init__(self, annotation: Graphs, roles: Int[Tensor, "batch n n"]) -> None:
        self._annotation, self._roles = annotation, roles

    def parts(self) -> Parts:
        """The graphs, predicates among them."""
        return self._parts

    @cached_property
    def _parts(self) -> Parts:
        places, roles = self._arcs
        z = torch.zeros(*self._roles.shape, 1 + len(self._annotation.roles))
        batch, head, argument = places.unbind(-1)
        z[batch, head, argument, 0] = z[batch, head, argument, roles + 1] = z[batch, head, head, 0] = 1.0
        return z

    @cached_property
    def _arcs(self) -> tuple[Int[Tensor, "arcs 3"], Int[Tensor, " arcs"]]:
        places = (self._roles >= 0).nonzero()
        return places, self._roles[places.unbind(-1)].long()

    def found(self, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """The graph of each sentence."""
        places, roles = self._arcs
        graphs = self._annotation.graphs_of(places.tolist(), roles.tolist(), len(lengths))
        return [{self._annotation.name: graph} for graph in graphs]


@dataclass(frozen=True)
class RoleRules:
    """Which roles there can be, and which arcs are worth something.

    Attributes:
        possible: The roles that two words may have by their tags, as bits.
        reach: How far apart they may be then: arguments on the left, and on the right.
        deterministic: The roles that a predicate has once at most.
        threshold: How likely a labelled arc must be to be worth something.
    """

    possible: Int[Tensor, "tags tags"]
    reach: Int[Tensor, "2 tags tags"]
    deterministic: Bool[Tensor, " roles"]
    threshold: float


def likely_roles(
    sides: WholeSides,
    lengths: Int[Tensor, " batch"],
    tags: Int[Tensor, "batch n"],
    predicates: Float[Tensor, "batch n"],
    arcs: Float[Tensor, "batch n n"],
    rules: RoleRules,
) -> Int[Tensor, "batch n n"]:
    """The roles of the arcs of the graphs whose labelled arcs are likely, one by one, by the kernel.

    It is what `graph_marginals`, `Scored.worth` and the argmax come to, with roles scored by products of whole numbers.

    Args:
        sides: What scores roles.
        lengths: Words of each sentence, behind the root.
        tags: The tag of each position, the root included.
        predicates: Scores of predicates.
        arcs: Scores of arcs.
        rules: What there can be.

    Returns:
        A role for each arc, -1 where there is none.

    Raises:
        ValueError: If the kernel could not make sense of it: what is no number, lengths and tags that are not there.
    """
    roles, (n, width) = torch.empty(arcs.shape, dtype=torch.int32), sides.heads.shape[1:]
    if (many := len(rules.deterministic)) > MOST_ROLES or width > WIDEST:
        raise ValueError(
            f"there are {many} roles, and {width} units of a side; {MOST_ROLES} and {WIDEST} are the most."
        )
    if roles.numel():
        check_range("lengths", lengths, n - 1)
        check_range("tags", tags, len(rules.possible) - 1)
        if not all(map(_are_numbers, (*sides[:2], predicates, arcs))):
            raise ValueError("Scores of graphs, or what they are made of, are not numbers; restore the parameters.")
        kernels.compiled.likely_graphs(
            sides.heads.contiguous(),
            sides.dependents.contiguous(),
            lengths + 1,
            *sides.turning,
            predicates.contiguous(),
            arcs.contiguous(),
            tags.contiguous(),
            rules.possible,
            rules.reach,
            rules.deterministic,
            rules.threshold,
            roles,
            kernel_threads(),
        )
    return roles


def _are_numbers(values: Tensor) -> bool:
    """Whether all are. One sum tells, and writes nothing down; only where it is too large are they looked at singly."""
    return math.isfinite(values.sum()) or bool(values.isfinite().all())


@dataclass(frozen=True)
class GraphLimits:
    """The constraints of a batch as masks.

    Attributes:
        parts: The parts that graphs may have, in the layout of `SemanticGraphs`.
        forced: The arcs that graphs must have.
    """

    parts: Bool[Tensor, "batch n n c"]
    forced: Bool[Tensor, "batch n n"]

    def to(self, device: torch.device) -> "GraphLimits":
        """The same on another device."""
        return GraphLimits(self.parts.to(device), self.forced.to(device))

    def decide(self, scores: Parts, mask: Mask, structure: SemanticGraphs) -> tuple[Parts, Mask]:
        """Scores and mask under which the best graph is the best one that meets the constraints.

        Args:
            scores: The scores of the parts. Those of forced arcs must be among them, whatever the mask says.
            mask: The parts that exist without constraints.
            structure: The graphs.
        """
        kept = self._kept(mask & self.parts, structure)
        # Training may have seen too few roles for all that is forced: then any role will do for what has none left,
        # and if that does not suffice, for all forced arcs of the sentence.
        for whole in (False, True):
            decisive = self._decisive(scores, kept, structure)
            _, found, _ = structure.unpack(structure.argmax(decisive, kept))
            missed = (found == 0) & self.forced
            if not missed.any():
                return decisive, kept
            again = self.forced & missed.any((-1, -2), keepdim=True) if whole else missed
            kept = kept | (again.unsqueeze(-1) & self.parts)
        return self._decisive(scores, kept, structure), kept

    def _kept(self, mask: Mask, structure: SemanticGraphs) -> Mask:
        """The mask with all forced arcs in it, and without arcs that have lost all their roles."""
        predicates, arcs, roles = structure.unpack(mask)
        _, _, allowed = structure.unpack(self.parts)
        bare = self.forced & ~roles.any(-1)
        roles = roles | (bare.unsqueeze(-1) & allowed)
        return structure.pack(predicates, (arcs | self.forced) & roles.any(-1), roles)

    def _decisive(self, scores: Parts, mask: Mask, structure: SemanticGraphs) -> Parts:
        """Scores by which a forced arc is worth more than all else that its predicate could have or do without.

        Constraints of graphs are local to a predicate, so that the bound is, too. The 8 is for an estimator that adds
        noise to every part, the 32 for one that takes marginals.
        """
        predicates, arcs, labelled = structure.unpack(scores.masked_fill(~mask, 0).abs())
        exist = [part.to(scores.dtype) for part in structure.unpack(mask)[:2]]
        most = (arcs + labelled.amax(-1) + 8 * exist[1]).sum(-1) + predicates + 8 * exist[0]
        bonus = (2 * most.unsqueeze(-1) + 32) * self.forced
        own, arc_scores, role_scores = structure.unpack(scores)
        return structure.pack(own, arc_scores + bonus, role_scores)


def has_graph(graphs: SemanticGraphs, parts: Bool[Tensor, "n n c"], forced: Bool[Tensor, "n n"]) -> bool:
    """Whether all forced arcs fit into one graph: where every arc is worth the same, the best graph has the most."""
    itself = torch.eye(len(forced), dtype=torch.bool)
    mask = parts & (forced | itself).unsqueeze(-1)
    _, arcs, _ = graphs.unpack(graphs.argmax(torch.ones(mask.shape), mask))
    return bool((arcs > 0)[forced].all())


def graph_masks(
    demands: Constraints, size: int, roles: Sequence[str], graphs: SemanticGraphs
) -> tuple[Bool[Tensor, "n n c"], Bool[Tensor, "n n"]]:
    """The parts a graph may have, and the arcs it must have."""
    index = {role: 1 + k for k, role in enumerate(roles)}
    allowed = torch.ones(size, size, 1 + len(roles), dtype=torch.bool)
    allowed[0, :, 2:] = allowed[1:, :, 1] = False  # the first role is TOP, for arcs of the root and for no others
    forced = torch.zeros(size, size, dtype=torch.bool)
    for arc in demands.arcs:
        predicate, argument = arc[:2]
        forced[predicate, argument] = True
        if not (role := role_of(arc)):
            continue
        channel = index[role]
        if channel - 1 in graphs.deterministic:
            allowed[predicate, torch.arange(size) != argument, channel] = False
        allowed[predicate, argument, [k for k in index.values() if k != channel]] = False
    for arc in demands.not_arcs:
        predicate, argument = arc[:2]
        role = role_of(arc)
        allowed[predicate, argument, index[role] if role else slice(None)] = False
    return allowed, forced


def no_graph(demands: Constraints, roles: Sequence[str], graphs: SemanticGraphs) -> str:
    """What to tell a user whose constraints leave no graph."""
    said = {role_of(arc) for arc in demands.arcs}
    once = [role for k, role in enumerate(roles) if k in graphs.deterministic and (role in said or "" in said)]
    why = f" (a predicate has each of these roles once at most: {', '.join(once)})" if once else ""
    return f"No graph meets these constraints together: {demands.describe(trees=False)}{why}; drop one of them."


PRUNER = "pruner"


class PrunedGraphSettings(StageSettings):
    """What all parsers of semantic graphs can be told.

    Attributes:
        mlp_layers: Hidden layers of perceptrons.
        loss: The structured hinge with costs, or the log loss of the same model without determinism.
        false_positive: Cost of a labelled arc too many (hinge).
        false_negative: Cost of a labelled arc missed (hinge).
        decoding: What is found: the `best` graph by its score; or, after the log loss, the one with the best
            `marginals`: labelled arcs are worth how likely they are, less the threshold.
        threshold: How likely a labelled arc must be to be worth something, if marginals decode.
        determinism: Whether roles that no training predicate repeats may be used once only.
        roles: How many roles latent graphs have.
    """

    mlp_layers: Annotated[int, Field(ge=1, le=3)] = 2
    loss: Literal["hinge", "log"] = "hinge"
    false_positive: Annotated[float, Field(ge=0)] = 0.4
    false_negative: Annotated[float, Field(ge=0)] = 0.6
    decoding: Literal["best", "marginals"] = "best"
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.35
    determinism: bool = True
    roles: Size = 4
    pruning: Pruning = Pruning()
    optimiser: Optimiser = Optimiser(anneal_every=10)

    @model_validator(mode="after")
    def _has_probabilities(self) -> "PrunedGraphSettings":
        if self.decoding == "marginals" and (self.latent or self.loss != "log"):
            lacks = "latent graphs do not have" if self.latent else f"loss = {self.loss!r} does not learn"
            raise ValueError(f"decoding = 'marginals' needs probabilities, which {lacks}; use loss = 'log' and data")
        return self


class GraphSettings(PrunedGraphSettings):
    """The semantic parser.

    Attributes:
        scorer: What scores arcs and roles: a perceptron for each pair of words that pruning leaves, or a product of the
            two words (biaffine), which is so cheap that it needs no learned pruning.
        label_mlp: Hidden units of the products that score roles.
        dropout: Share of the hidden units of products that is left out, one mask a sentence.
    """

    scorer: Literal["mlp", "biaffine"] = "mlp"
    label_mlp: Size = 64
    dropout: Rate = 0.0


@final
@STAGES.register("graphs")
class GraphStage(AbstractStage[GraphSettings, Graphs, spigot.SemanticGraphs]):
    """Scores what pruning leaves; the best graph follows.

    Attributes:
        seen: What training has seen between tags.
        pruner: The small parser that decides what is scored; `None` if none is learned.

    Example:
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Arc, Graph, Sentence
        >>> from spigot_nlp.data.vocab import Vocab
        >>> rain = Sentence(("Rain", "fell"), graph=Graph.of([Arc(2, 1, "ARG1")], tops=[2]))
        >>> vocab, graphs = Vocab.of([rain]), Graphs.learn("graph", [rain], None)
        >>> parser = GraphStage("semantics", GraphSettings(annotation="graphs"), graphs, Surroundings(vocab))
        >>> batch = collate([encode(rain, vocab, {"semantics": graphs})], {"semantics": graphs})
        >>> parser.loss(batch).shape, parser.evidence(batch).scores.shape         # two roles: TOP and ARG1
        (torch.Size([1]), torch.Size([1, 3, 3, 3]))
    """

    Settings = GraphSettings

    def __init__(self, name: str, settings: GraphSettings, annotation: Graphs, around: Surroundings) -> None:
        if not annotation.roles:
            raise ValueError("The training graphs have no arcs and no tops, so there is nothing a parser could find.")
        super().__init__(name, settings, annotation, around)
        roles = len(annotation.roles)
        self.structure = spigot.SemanticGraphs(roles, annotation.deterministic if settings.determinism else ())
        self.seen = SeenArcs(settings.pruning, around.vocab, annotation)
        self.predicates = WordScorer(self.width, settings.mlp, settings.mlp_layers)
        if settings.scorer == "mlp":
            self.pairs = PairScorer(self.width, settings.mlp, settings.mlp_layers)
            self.labels = PairScorer(self.width, settings.mlp, settings.mlp_layers, outputs=roles)
        else:
            self.pairs = Biaffine(self.width, settings.mlp, dropout=settings.dropout)
            self.labels = Biaffine(self.width, settings.label_mlp, roles, dropout=settings.dropout, stream=1)
        self.pruner = ArcPruner(settings.pruning, around.vocab, around.run) if self.helper_plans(settings) else None

    @classmethod
    def refusal(cls, settings: GraphSettings, estimator: EstimatorSettings) -> str:
        """Marginals are out of reach where roles are deterministic, and there are no scores where marginals decode."""
        if estimator.name == "attention" and settings.decoding == "marginals":
            return (
                "system = 'attention' needs marginals of scores, which decoding = 'marginals' leaves none of; use "
                "decoding = 'best'"
            )
        if estimator.name == "attention" and settings.determinism and not settings.latent:
            return (
                "system = 'attention' needs marginals, and no efficient algorithm gives those of semantic graphs with "
                "deterministic roles; use ste, spigot or another estimator, or set semantics.determinism = false"
            )
        return ""

    def evidence(self, batch: Batch, read: Sequence[Parts] = (), *, limits: GraphLimits | None = None) -> Evidence:
        """Scores of all parts in the structure's layout; no pruning removes a forced arc."""
        surviving = self.surviving(batch, None)
        if limits is not None:
            surviving = surviving | limits.forced.to(batch.device)
        scored = self._scored(batch, read, surviving, None, noisy=False)
        if self.settings.decoding == "marginals":
            scored = scored.worth(graph_marginals(scored), self.settings.threshold)
        return self.parts(batch, scored)

    def decided(self, batch: Batch, read: Sequence[Found] = ()) -> GraphDecision | None:
        """The graphs whose labelled arcs are likely, in whole numbers."""
        if self.settings.decoding != "marginals" or self.pruner is not None or self.structure.labels > MOST_ROLES:
            return None
        if not isinstance(self.labels, Biaffine) or self.labels.precision != WHOLE:
            return None
        states = self.states(batch, read, noisy=False)
        sides = self.labels.sides_in_whole(states)
        if sides is None:
            return None
        single = torch.zeros(self.structure.labels, dtype=torch.bool)
        single[list(self.structure.deterministic)] = True
        rules = RoleRules(self.seen.role_bits, self.seen.reach, single, self.settings.threshold)
        scores = self.predicates(states), self.pairs(states).squeeze(-1)
        return GraphDecision(self.annotation, likely_roles(sides, batch.lengths, batch.tags[:, :-1], *scores, rules))

    def decisive(self, evidence: Evidence, limits: GraphLimits | None) -> Evidence:
        """Forced arcs get scores such that the best graph has them."""
        if limits is None:
            return evidence
        return Evidence(*limits.to(evidence.scores.device).decide(*evidence, self.structure))

    def loss(self, batch: Batch, read: Sequence[Parts] = ()) -> Values:
        """The hinge or the log loss of each sentence's gold graph, over what survives; gold arcs do, in training."""
        gold: GoldGraph = self.gold(batch)
        kept = gold if batch.seeds is not None else None
        scored = self._scored(batch, read, self.surviving(batch, kept), kept, noisy=True)
        if self.settings.loss == "log":
            return graph_log_loss(scored, batch.lengths, gold)
        scores, mask = self.parts(batch, scored)
        weight = torch.ones(scores.shape[-1], dtype=scores.dtype, device=scores.device)
        weight[0] = 0  # the cost counts labelled arcs only
        return spigot.structured_hinge(
            scores,
            graph_parts(gold, self.structure, scores.dtype),
            self.structure,
            mask=mask,
            weight=weight,
            false_positive=self.settings.false_positive,
            false_negative=self.settings.false_negative,
        )

    def surviving(self, batch: Batch, gold: GoldGraph | None) -> Bool[Tensor, "batch n n"]:
        """The arcs that pruning leaves, and gold arcs if they are to be kept."""
        surviving = self.seen(batch)
        if self.pruner is not None:
            surviving = self.pruner(batch, surviving)
        if gold is not None:
            surviving[gold.arcs[:, :3].unbind(-1)] = True
        return surviving

    def parts(self, batch: Batch, scored: Scored) -> Evidence:
        """All parts in the structure's layout, and which exist."""
        return Evidence(*dense_parts(scored, batch.lengths))

    def alternatives(
        self, z: Parts, evidence: Evidence, batch: Batch, values: Sequence[Any], top: int
    ) -> list[tuple[ArcScore, ...]]:
        """The arcs of each graph, then its tops, with the next best roles."""
        known = partial(self.seen.labels, batch)
        return arc_alternatives(values, self.annotation.roles, evidence.scores, known, top)

    @property
    def arc_labels(self) -> int:
        """The roles."""
        return self.structure.labels

    def part(self, place: Sequence[int]) -> Arc:
        """An arc with its role, or without; a predicate is an arc to itself."""
        return Arc(place[0], place[1], self.annotation.roles[place[2] - 1] if place[2] else "")

    def arcs(self, z: Parts) -> tuple[Parts, Parts]:
        """Arcs without and with their roles. Predicates are not among them."""
        _, arcs, labelled = self.structure.unpack(z)
        return arcs, labelled

    @classmethod
    def helper_plans(cls, settings: GraphSettings) -> dict[str, HelperPlan]:
        """The pruner, if one is learned."""
        learned = settings.pruning.learned and not settings.latent
        return {PRUNER: HelperPlan(settings.pruning.epochs)} if learned else {}

    def helpers(self) -> dict[str, Helper]:
        """The pruner, if one is learned."""
        return {} if self.pruner is None else {PRUNER: Helper(self.pruner, self.settings.pruning.optimiser)}

    def helper_loss(self, helper: str, batch: Batch) -> Values:
        """The pruner's loss."""
        if self.pruner is None:
            return super().helper_loss(helper, batch)
        return self.pruner.loss(batch, self.gold(batch), self.seen(batch))

    @torch.no_grad()
    def helper_scores(self, helper: str, batches: Iterable[Batch]) -> dict[str, float]:
        """What pruning leaves: labelled parts and arcs a token, and its recall."""
        arcs = parts = tokens = wanted = found = 0
        for batch in batches:
            kept = self.surviving(batch, None)
            arcs, parts = arcs + int(kept.sum()), parts + int(self.seen.labels(batch, kept.nonzero()).sum())
            tokens += int(batch.lengths.sum())
            gold: GoldGraph = self.gold(batch)
            pairs, role = gold.arcs[:, :3], gold.arcs[:, 3:]
            allowed = self.seen.labels(batch, pairs).gather(-1, role).squeeze(-1)
            wanted, found = wanted + len(pairs), found + int((kept[pairs.unbind(-1)] & allowed).sum())
        return {
            "arcs_a_token": arcs / max(tokens, 1),
            "parts_a_token": parts / max(tokens, 1),
            "recall": 100 * found / max(wanted, 1),
        }

    def prepare(self, sentences: Sequence[Encoded]) -> None:
        """Fill the tables of what training has seen."""
        if not self.settings.latent:
            self.seen.learn(self.name, sentences)

    def is_concerned(self, demands: Constraints) -> bool:
        """Whether anything is said about the graph."""
        return demands.on_graphs

    def limits(self, demands: Sequence[Constraints | None], lengths: Sequence[int], size: int) -> GraphLimits | None:
        """The parts that constraints leave, and the arcs they force; together they fit into a graph."""
        roles = self.annotation.roles
        said = checked_demands(demands, lengths, roles)
        if not any(demand.on_graphs for demand in said):
            return None
        masks = [graph_masks(demand, size, roles, self.structure) for demand in said]
        parts, forced = (torch.stack(several) for several in zip(*masks, strict=True))
        for index, demand in enumerate(said):
            if demand.arcs and not has_graph(self.structure, parts[index], forced[index]):
                raise Infeasible(no_graph(demand, roles, self.structure), index)
        return GraphLimits(parts, forced)

    def _scored(
        self,
        batch: Batch,
        read: Sequence[Parts],
        surviving: Bool[Tensor, "batch n n"],
        gold: GoldGraph | None,
        *,
        noisy: bool,
    ) -> Scored:
        states, seeds = self.states(batch, read, noisy=noisy), batch.seeds if noisy else None
        pairs = surviving.nonzero()
        return Scored(
            self.predicates(states),
            pairs,
            self.pairs.at(states, pairs, seeds).squeeze(-1),
            self.labels.at(states, pairs, seeds),
            self._possible(batch, pairs, gold),
        )

    def _possible(self, batch: Batch, pairs: Int[Tensor, "pairs 3"], gold: GoldGraph | None) -> Bool[Tensor, "pairs l"]:
        possible = self.seen.labels(batch, pairs)
        if gold is not None:
            possible[rows_of(pairs, gold.arcs, *batch.tags[:, 1:].shape), gold.arcs[:, 3]] = True
        return possible
