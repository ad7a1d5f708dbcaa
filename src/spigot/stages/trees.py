"""Unlabelled dependency parser: BiLSTM states, an MLP for each arc, a tree (Kiperwasser and Goldberg, 2016)."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, final

import torch
from pydantic import Field

import spigot
from spigot.annotations.trees import Trees, is_projective, tree_parts
from spigot.batches.batch import Batch
from spigot.data.sentence import Sentence
from spigot.nn.scorers import PairScorer
from spigot.stages.alternatives import Alternative, head_alternatives
from spigot.stages.constraints import Constraints, Infeasible, checked_demands
from spigot.stages.stage import STAGES, AbstractStage, Evidence, StageSettings, Surroundings
from spigot.stages.tree_limits import has_tree, no_tree, tree_mask
from spigot.structures.trees import AbstractTrees
from spigot.types import Mask, Parts, Values
from spigot.values import Count, Optimiser
from spigot.wires.estimators import EstimatorSettings


class TreeSettings(StageSettings):
    """The syntactic parser.

    Attributes:
        trees: What it decodes into.
        single_root: Whether exactly one word hangs on the root.
        mlp: Hidden units of the arc scorer.
        mlp_layers: Its hidden layers.
        loss: The structured hinge, or the likelihood of a CRF over trees, `crf`; `crf-entropy` minimises the entropy
            of the trees beside it, as the published program did without meaning to.
    """

    trees: Literal["projective", "nonprojective"] = "projective"
    single_root: bool = True
    mlp_layers: Annotated[int, Field(ge=1, le=3)] = 1
    loss: Literal["hinge", "crf", "crf-entropy"] = "hinge"
    keep: Count = Field(default=0, description="Arc pruning: the best heads a word keeps; 0 keeps all.")
    optimiser: Optimiser = Optimiser(anneal_every=5)


@final
@STAGES.register("trees")
class TreeStage(AbstractStage[TreeSettings, Trees, AbstractTrees]):
    """Scores every arc; the best tree follows.

    Example:
        >>> from spigot.batches import collate, encode
        >>> from spigot.data.vocab import Vocab
        >>> rain = Sentence(("Rain", "fell"), heads=(2, 0))
        >>> vocab, trees = Vocab.of([rain]), {"syntax": Trees()}
        >>> parser = TreeStage("syntax", TreeSettings(annotation="trees"), Trees(), Surroundings(vocab))
        >>> batch = collate([encode(rain, vocab, trees)], trees)
        >>> parser.evidence(batch).scores.shape, parser.loss(batch).shape
        (torch.Size([1, 3, 3]), torch.Size([1]))
    """

    Settings = TreeSettings

    def __init__(self, name: str, settings: TreeSettings, annotation: Trees, around: Surroundings) -> None:
        super().__init__(name, settings, annotation, around)
        trees = spigot.ProjectiveTrees if settings.trees == "projective" else spigot.NonProjectiveTrees
        self.structure = trees(single_root=settings.single_root)
        self.scorer = PairScorer(self.width, settings.mlp, settings.mlp_layers)

    @classmethod
    def refusal(cls, settings: TreeSettings, estimator: EstimatorSettings) -> str:
        """The sequential projection is not for trees."""
        if getattr(estimator, "polytope", "") == "sequential":
            return "estimator.polytope = 'sequential' is about semantic graphs; use 'relaxation' for trees"
        return ""

    def evidence(self, batch: Batch, read: Sequence[Parts] = (), *, limits: Mask | None = None) -> Evidence:
        """Arc scores and which arcs exist; `limits` are the arcs that constraints leave."""
        return self._evidence(batch, read, noisy=False, allowed=limits)

    def loss(self, batch: Batch, read: Sequence[Parts] = ()) -> Values:
        """The cost-augmented hinge, one a wrong head, or the likelihood."""
        heads = self.gold(batch)
        scores, mask = self._evidence(batch, read, noisy=True, allowed=None)
        gold = tree_parts(heads, batch.lengths, scores.dtype)
        mask = mask | (gold > 0)
        if self.settings.loss != "hinge":
            weight = 1.0 if self.settings.loss == "crf-entropy" else 0.0
            return spigot.crf_nll(scores, gold, self.structure, mask=mask, entropy=weight)
        return spigot.structured_hinge(scores, gold, self.structure, mask=mask, false_positive=0.5, false_negative=0.5)

    def alternatives(
        self, z: Parts, evidence: Evidence, batch: Batch, values: Sequence[Any], top: int
    ) -> list[tuple[tuple[Alternative, ...], ...]]:
        """For every word its heads by how probable they are."""
        return head_alternatives(self.structure, z, *evidence, batch, top)

    @property
    def arc_labels(self) -> int:
        """None: its arcs have no labels."""
        return 0

    def arcs(self, z: Parts) -> tuple[Parts, None]:
        """The trees are their arcs."""
        return z, None

    def usable(self, sentence: Sentence) -> bool:
        """Whether the parser can produce the tree: without crossing arcs, with one root if it must have one."""
        heads = sentence.get(self.annotation.name)
        if heads is None or (self.settings.single_root and heads.count(0) != 1):
            return False
        return self.settings.trees == "nonprojective" or is_projective(heads)

    def about_usable(self) -> str:
        """Which trees it can produce."""
        return f" (trees = {self.settings.trees!r}, single_root = {self.settings.single_root})"

    def is_concerned(self, demands: Constraints) -> bool:
        """Whether anything is said about the tree."""
        return demands.on_trees

    def limits(self, demands: Sequence[Constraints | None], lengths: Sequence[int], size: int) -> Mask | None:
        """The arcs that constraints leave; they leave a tree."""
        said = checked_demands(demands, lengths)
        if not any(demand.on_trees for demand in said):
            return None
        allowed = torch.stack([tree_mask(demand, size) for demand in said])
        exist = self.structure.mask(torch.tensor(lengths), size) & allowed
        for index, demand in enumerate(said):
            if demand.on_trees and not has_tree(self.structure, exist[index], lengths[index]):
                raise Infeasible(no_tree(demand, self.structure), index)
        return allowed

    def _evidence(self, batch: Batch, read: Sequence[Parts], *, noisy: bool, allowed: Mask | None) -> Evidence:
        scores = self.scorer(self.states(batch, read, noisy=noisy)).squeeze(-1)
        return Evidence(scores, self._exists(scores, batch, None if allowed is None else allowed.to(batch.device)))

    def _exists(self, scores: Parts, batch: Batch, allowed: Mask | None) -> Mask:
        """All arcs, or the best few heads of each word and the word before it, so that a tree is always left."""
        mask = whole = self.structure.mask(batch.lengths, batch.size)
        if allowed is not None:
            mask = mask & allowed
        if not self.settings.keep or batch.size <= self.settings.keep:
            return mask
        best = scores.detach().masked_fill(~mask, -torch.inf).topk(self.settings.keep, dim=-2).indices
        kept = torch.zeros_like(mask).scatter_(-2, best, True)
        chain = torch.ones(batch.size - 1, dtype=torch.bool, device=mask.device).diag(1)
        kept = mask & (kept | chain)
        if allowed is not None:
            for k in (mask != whole).any((-1, -2)).nonzero().flatten().tolist():
                if not has_tree(self.structure, kept[k], int(batch.lengths[k])):
                    kept[k] = mask[k]  # constraints that only a worse head can meet
        return kept
