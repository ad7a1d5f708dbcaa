"""Dependency parser: states of words, a score for each arc and relation, a tree (Kiperwasser and Goldberg, 2016)."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, final

import torch
from pydantic import Field, model_validator

import spigot
from spigot import AbstractTrees
from spigot.types import Mask, Parts, Values
from spigot_nlp.annotations.trees import GoldTrees, Trees, is_projective, tree_parts
from spigot_nlp.batches.batch import Batch, Encoded
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.nn.best_products import root_labels
from spigot_nlp.nn.biaffine import Biaffine
from spigot_nlp.nn.scorers import PairScorer
from spigot_nlp.nn.whole import WHOLE
from spigot_nlp.stages.alternatives import Alternative, head_alternatives
from spigot_nlp.stages.constraints import Constraints, Infeasible, checked_demands
from spigot_nlp.stages.evidence import Found, HelperPlan
from spigot_nlp.stages.graph_scores import dense, flat_places
from spigot_nlp.stages.head_pruning import HeadPruner, HeadPruning
from spigot_nlp.stages.stage import STAGES, AbstractStage, Evidence, Helper, StageSettings, Surroundings
from spigot_nlp.stages.tree_decision import TreeDecision
from spigot_nlp.stages.tree_limits import conflict, has_tree, no_tree, tree_mask
from spigot_nlp.values import Optimiser, Positive, Rate
from spigot_nlp.wires.estimators import EstimatorSettings

PRUNER = "pruner"


class TreeSettings(StageSettings):
    """The syntactic parser.

    Attributes:
        trees: What it decodes into.
        single_root: Whether exactly one word hangs on the root.
        labelled: Whether it finds the relation of each word to its head, too.
        scorer: What scores arcs: a perceptron for each pair of words, or a product of the two (biaffine).
        mlp: Hidden units of the arc scorer.
        mlp_layers: Its hidden layers, if it is a perceptron.
        relation_mlp: Hidden units of the scorer of relations, which is always a product.
        dropout: Share of the hidden units of products that is left out, one mask a sentence.
        loss: The structured hinge, or the likelihood of a CRF over trees, `crf`; `crf-entropy` minimises the entropy
            of the trees beside it, as the published program did without meaning to.
        pruning: Which heads of a word it scores.
    """

    trees: Literal["projective", "nonprojective"] = "projective"
    single_root: bool = True
    labelled: bool = False
    scorer: Literal["mlp", "biaffine"] = "mlp"
    relation_mlp: Positive = 64
    dropout: Rate = 0.0
    mlp_layers: Annotated[int, Field(ge=1, le=3)] = 1
    loss: Literal["hinge", "crf", "crf-entropy"] = "hinge"
    pruning: HeadPruning = HeadPruning()
    optimiser: Optimiser = Optimiser(anneal_every=5)

    @model_validator(mode="after")
    def _has_trees(self) -> "TreeSettings":
        if self.latent and (self.pruning.learned or self.pruning.dictionary):
            raise ValueError(
                "pruning learns from trees, and latent ones are not annotated; set pruning.learned = false and "
                "pruning.dictionary = false"
            )
        return self

    def idle(self) -> dict[str, str]:
        """The settings that do nothing beside others, and beside which."""
        found = {} if self.scorer == "mlp" else {"mlp_layers": f"scorer = {self.scorer!r}"}
        if not self.labelled:
            found["relation_mlp"] = "labelled = false"
            if self.scorer == "mlp":
                found["dropout"] = "scorer = 'mlp' and labelled = false"
        return found


@final
@STAGES.register("trees")
class TreeStage(AbstractStage[TreeSettings, Trees, AbstractTrees | spigot.LabelledTrees]):
    r"""Scores every arc, and every relation of it if it is labelled; the best tree follows.

    The score of an arc with a relation is that of the arc plus that of the relation, so that its structures are those
    of `LabelledTrees`: the likelihood sums over relations, the best tree has the best relation on each arc.

    Example:
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.vocab import Vocab
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0), relations=("nsubj", "root"))
        >>> vocab, trees = Vocab.of([rain]), {"syntax": Trees()}
        >>> parser = TreeStage("syntax", TreeSettings(annotation="trees"), Trees(), Surroundings(vocab))
        >>> batch = collate([encode(rain, vocab, trees)], trees)
        >>> parser.evidence(batch).scores.shape, parser.loss(batch).shape
        (torch.Size([1, 3, 3]), torch.Size([1]))
        >>> settings, trees = TreeSettings(annotation="trees", labelled=True), Trees(relations=("nsubj", "root"))
        >>> parser = TreeStage("syntax", settings, trees, Surroundings(vocab))
        >>> batch = collate([encode(rain, vocab, {"syntax": trees})], {"syntax": trees})
        >>> parser.evidence(batch).scores.shape, parser.loss(batch).shape
        (torch.Size([1, 3, 3, 2]), torch.Size([1]))
    """

    Settings = TreeSettings

    def __init__(self, name: str, settings: TreeSettings, annotation: Trees, around: Surroundings) -> None:
        if settings.labelled and not annotation.relations:
            raise ValueError(
                f"The training trees of {name} have no relations, so there is nothing to label arcs with; give trees "
                "that have, or set labelled = false."
            )
        super().__init__(name, settings, annotation, around)
        kind = spigot.ProjectiveTrees if settings.trees == "projective" else spigot.NonProjectiveTrees
        self.trees = kind(single_root=settings.single_root)
        relations = annotation.relations or ()
        self.structure = spigot.LabelledTrees(self.trees, len(relations)) if relations else self.trees
        if settings.scorer == "mlp":
            self.scorer = PairScorer(self.width, settings.mlp, settings.mlp_layers)
        else:
            self.scorer = Biaffine(self.width, settings.mlp, dropout=settings.dropout)
        self.relations = (
            Biaffine(self.width, settings.relation_mlp, len(relations), dropout=settings.dropout, stream=1)
            if relations
            else None
        )
        pruning = settings.pruning
        prunes = pruning.learned or pruning.dictionary
        self.pruner = HeadPruner(pruning, self.trees, around.vocab, around.run) if prunes else None

    @classmethod
    def refusal(cls, settings: TreeSettings, estimator: EstimatorSettings) -> str:
        """The sequential projection is not for trees."""
        if getattr(estimator, "polytope", "") == "sequential":
            return "estimator.polytope = 'sequential' is about semantic graphs; use 'relaxation' for trees"
        return ""

    def evidence(self, batch: Batch, read: Sequence[Parts] = (), *, limits: Mask | None = None) -> Evidence:
        """Arc scores and which arcs exist; `limits` are the arcs that constraints leave."""
        kept = self.surviving(batch)
        if limits is None:
            return self._evidence(batch, read, kept, noisy=False)
        arcs = self._allowed(kept, batch, limits.to(batch.device))
        scores, every = self._evidence(batch, read, kept | arcs, noisy=False)  # for whoever asks what is ruled out
        return Evidence(scores, every & (arcs if self.relations is None else arcs.unsqueeze(-1)))

    def decided(self, batch: Batch, read: Sequence[Found] = ()) -> TreeDecision | None:
        """The best labelled trees by the best relation of each arc, in whole numbers."""
        if self.relations is None or self.relations.precision != WHOLE:
            return None
        states = self.states(batch, read, noisy=False)
        named = self.relations.best_in_whole(states, batch.lengths, self.annotation.root_index)
        if named is None:
            return None
        best, which = named
        scores = self.scorer(states).squeeze(-1) + best
        return TreeDecision(self.annotation, self.trees.argmax(scores, self.surviving(batch)), which)

    def loss(self, batch: Batch, read: Sequence[Parts] = ()) -> Values:
        """The cost-augmented hinge, one a wrong head or relation, or the likelihood."""
        gold = self._gold_parts(batch)
        right = gold if self.relations is None else gold.sum(-1)
        scores, mask = self._evidence(batch, read, self.surviving(batch) | (right > 0), noisy=True)
        gold, mask = gold.to(scores.dtype), mask | (gold > 0)
        if self.settings.loss != "hinge":
            weight = 1.0 if self.settings.loss == "crf-entropy" else 0.0
            return spigot.crf_nll(scores, gold, self.structure, mask=mask, entropy=weight)
        return spigot.structured_hinge(scores, gold, self.structure, mask=mask, false_positive=0.5, false_negative=0.5)

    def _gold_parts(self, batch: Batch) -> Parts:
        gold, arcs = self.gold(batch), self._gold_arcs(batch)
        if not isinstance(gold, GoldTrees):
            return arcs
        named = torch.nn.functional.one_hot(gold.relations, len(self.annotation.relations or ()))
        return arcs.unsqueeze(-1) * named.unsqueeze(1)

    def _gold_arcs(self, batch: Batch) -> Parts:
        gold = self.gold(batch)
        return tree_parts(gold.heads if isinstance(gold, GoldTrees) else gold, batch.lengths, torch.get_default_dtype())

    def found(self, z: Parts, evidence: Evidence | None, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """The heads of each sentence, and the relations if there are any."""
        heads = super().found(z, evidence, lengths)
        if self.relations is None:
            return heads
        names = self.annotation.decode_relations(z, lengths)
        return [{**tree, self.annotation.relation_field: some} for tree, some in zip(heads, names, strict=True)]

    def alternatives(
        self, z: Parts, evidence: Evidence, batch: Batch, values: Sequence[Any], top: int
    ) -> list[tuple[tuple[Alternative, ...], ...]]:
        """For every word its heads by how probable they are, each with its best relation if there are any."""
        root, names = self.annotation.root_index, self.annotation.relations or ()
        possible = None if root is None else root_labels(batch.size, len(names), root).to(batch.device)
        exists = self.surviving(batch) | (evidence.mask.any(-1) if names else evidence.mask)
        return head_alternatives(self.trees, z, *evidence, batch, top, names, possible, exists)

    def arc_evidence(self, evidence: Evidence) -> Evidence:
        """What the relations of each arc come to together, by which the trees without them can be told."""
        if not isinstance(self.structure, spigot.LabelledTrees):
            return evidence
        return Evidence(*self.structure.arc_scores(*evidence))

    @property
    def arc_labels(self) -> int:
        """The relations; none if its arcs have no labels."""
        return len(self.annotation.relations or ())

    def part(self, place: Sequence[int]) -> Arc:
        """An arc, with its relation if it has one."""
        relations = self.annotation.relations
        return Arc(place[0], place[1], relations[place[2]] if relations else "")

    def arcs(self, z: Parts) -> tuple[Parts, Parts | None]:
        """The trees are their arcs; labelled ones the sum over relations."""
        return (z, None) if self.relations is None else (z.sum(-1), z)

    def usable(self, sentence: Sentence) -> bool:
        """Whether the parser can produce the tree: without crossing arcs, with one root if it must have one."""
        heads = sentence.get(self.annotation.name)
        if self.relations is not None:
            known = self.annotation.relation_index
            if not all(relation in known for relation in sentence.get(self.annotation.relation_field) or ("",)):
                return False
        if heads is None or (self.settings.single_root and heads.count(0) != 1):
            return False
        return self.settings.trees == "nonprojective" or is_projective(heads)

    def about_usable(self) -> str:
        """Which trees it can produce."""
        labelled = ", labelled = true" if self.settings.labelled else ""
        return f" (trees = {self.settings.trees!r}, single_root = {self.settings.single_root}{labelled})"

    def is_concerned(self, demands: Constraints) -> bool:
        """Whether anything is said about the tree."""
        return demands.on_trees

    def limits(self, demands: Sequence[Constraints | None], lengths: Sequence[int], size: int) -> Mask | None:
        """The arcs that constraints leave; they leave a tree."""
        said = checked_demands(demands, lengths)
        if not any(demand.on_trees for demand in said):
            return None
        allowed = torch.stack([tree_mask(demand, size) for demand in said])
        exist = self.trees.mask(torch.tensor(lengths), size) & allowed
        for index, demand in enumerate(said):
            if demand.on_trees and not has_tree(self.trees, exist[index], lengths[index]):
                raise Infeasible(no_tree(conflict(demand, self.trees, lengths[index]), self.trees), index)
        return allowed

    def surviving(self, batch: Batch) -> Mask:
        """The arcs that pruning leaves."""
        return self.trees.mask(batch.lengths, batch.size) if self.pruner is None else self.pruner(batch)

    def _allowed(self, kept: Mask, batch: Batch, limits: Mask) -> Mask:
        """What constraints leave of what pruning leaves, and the arcs that they force; all that they leave where a
        sentence has no tree among these."""
        exists = self.trees.mask(batch.lengths, batch.size)
        allowed = exists & limits
        arcs = kept & allowed | allowed & (allowed.sum(-2, keepdim=True) == 1)
        for k in (allowed != exists).any((-1, -2)).nonzero().flatten().tolist():
            if not has_tree(self.trees, arcs[k], int(batch.lengths[k])):
                arcs[k] = allowed[k]
        return arcs

    @classmethod
    def helper_plans(cls, settings: TreeSettings) -> dict[str, HelperPlan]:
        """The pruner, if one is learned."""
        pruning = settings.pruning
        return {PRUNER: HelperPlan(pruning.epochs, pruning.batch)} if pruning.learned else {}

    def helpers(self) -> dict[str, Helper]:
        """The pruner, if one is learned."""
        if self.pruner is None or not self.settings.pruning.learned:
            return {}
        return {PRUNER: Helper(self.pruner, self.settings.pruning.optimiser)}

    def helper_loss(self, helper: str, batch: Batch) -> Values:
        """The pruner's loss."""
        if self.pruner is None:
            return super().helper_loss(helper, batch)
        return self.pruner.loss(batch, self._gold_arcs(batch))

    def helper_scores(self, helper: str, batches: Iterable[Batch]) -> dict[str, float]:
        """What pruning leaves: heads a word and how many of the gold ones, and what the pruner finds by itself."""
        if self.pruner is None:
            return super().helper_scores(helper, batches)
        return self.pruner.scores((batch, self._gold_arcs(batch)) for batch in batches)

    def prepare(self, sentences: Sequence[Encoded]) -> None:
        """Note the tags between which training has arcs."""
        if self.pruner is not None:
            self.pruner.learn(self.name, sentences)

    def _evidence(self, batch: Batch, read: Sequence[Parts], arcs: Mask, *, noisy: bool) -> Evidence:
        """Scores of arcs that are listed in a mask, and of all relations of each of them."""
        states, seeds = self.states(batch, read, noisy=noisy), batch.seeds if noisy else None
        if isinstance(self.scorer, Biaffine):
            scored = self.scorer(states, seeds)
        elif self.pruner is None:
            scored = self.scorer(states)
        else:  # few are left
            pairs = arcs.nonzero()
            scored = dense(self.scorer.at(states, pairs), flat_places(pairs, batch.size), len(batch), batch.size)
        if self.relations is None:
            return Evidence(scored.squeeze(-1), arcs)
        scores = scored + self.relations(states, seeds)
        root, mask = self.annotation.root_index, arcs.unsqueeze(-1).expand_as(scores)
        if root is not None:
            mask = mask & root_labels(batch.size, scores.shape[-1], root).to(mask.device)
        return Evidence(scores, mask)
