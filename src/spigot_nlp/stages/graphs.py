"""Semantic dependency parser: scores of predicates, arcs and labelled arcs, and the best graph (NeurboParser)."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated, Any, Literal, final

import torch
from jaxtyping import Bool, Int
from pydantic import Field, model_validator
from torch import Tensor

import spigot
from spigot.types import Parts, Values
from spigot_nlp.annotations.graphs import GoldGraph, Graphs, graph_parts
from spigot_nlp.batches.batch import Batch, Encoded
from spigot_nlp.data.sentence import Arc
from spigot_nlp.nn.biaffine import Biaffine
from spigot_nlp.nn.scorers import PairScorer, WordScorer
from spigot_nlp.nn.whole import WHOLE
from spigot_nlp.stages.alternatives import ArcScore, arc_alternatives
from spigot_nlp.stages.constraints import Constraints, Infeasible, checked_demands
from spigot_nlp.stages.evidence import Found, HelperPlan
from spigot_nlp.stages.graph_decision import MOST_ROLES, GraphDecision, RoleRules, likely_roles
from spigot_nlp.stages.graph_limits import GraphLimits, graph_masks, has_graph, no_graph
from spigot_nlp.stages.graph_scores import Scored, dense_parts, graph_log_loss, graph_marginals, rows_of
from spigot_nlp.stages.pruning import ArcPruner, Pruning, SeenArcs
from spigot_nlp.stages.stage import STAGES, AbstractStage, Evidence, Helper, StageSettings, Surroundings
from spigot_nlp.values import Optimiser, Positive, Rate
from spigot_nlp.wires.estimators import EstimatorSettings

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
    roles: Positive = 4
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
    label_mlp: Positive = 64
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
