"""Dependency parser: states of words, a score for each arc and relation, a tree (Kiperwasser and Goldberg, 2016)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

import spigot
from spigot import AbstractTrees, NoStructureError
from spigot.types import Mask, Parts, Values
from spigot_nlp.annotations.trees import GoldTrees, Trees, is_projective, tree_heads, tree_parts
from spigot_nlp.batches.batch import Batch, Encoded
from spigot_nlp.data.sentence import Arc, Sentence
from spigot_nlp.data.vocab import Vocab
from spigot_nlp.encoders import AnyEncoder, BiLSTMSettings, make_encoder
from spigot_nlp.nn.biaffine import Biaffine
from spigot_nlp.nn.quantised import WHOLE, root_labels
from spigot_nlp.nn.scorers import PairScorer
from spigot_nlp.stages.alternatives import Alternative, head_alternatives
from spigot_nlp.stages.constraints import Constraints, Infeasible, checked_demands
from spigot_nlp.stages.graph_scores import dense, flat_places
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
from spigot_nlp.values import Optimiser, Positive, Rate, Size
from spigot_nlp.values import Values as Settings
from spigot_nlp.wires.estimators import EstimatorSettings
from spigot_nlp.wires.readers import ChosenHeads


class HeadPruning(Settings):
    """Which heads of a word the syntactic parser scores; all of them unless something is switched on.

    Attributes:
        learned: Whether a small parser, which is trained first and then frozen, leaves each word a few heads.
        dictionary: Whether a head and a word must have tags that some arc of training has.
        top_heads: Most heads that the small parser leaves a word, apart from the word before it.
        threshold: How probable a head must be, as a share of the most probable one.
        epochs: Passes over the training trees.
        batch: Sentences in a step.
        entropy: Whether the entropy of the trees is minimised beside the likelihood, as in the published program.
        encoder: How its words become states.
        mlp: Units of each of its two hidden layers.
        optimiser: How it is updated.
    """

    learned: bool = False
    dictionary: bool = False
    top_heads: Positive = 10
    threshold: Annotated[float, Field(ge=0, le=1)] = 1e-4
    epochs: Positive = 1
    batch: Positive = 32
    entropy: bool = False
    encoder: AnyEncoder = BiLSTMSettings(word_dim=32, lemma_dim=16, tag_dim=16, hidden=32, layers=1)
    mlp: Size = 32
    optimiser: Optimiser = Optimiser(max_norm=5.0)

    def idle(self) -> dict[str, str]:
        """The settings that do nothing unless a parser is learned."""
        names = set(type(self).model_fields) - {"learned", "dictionary"}
        return {} if self.learned else dict.fromkeys(sorted(names), "learned = false")


class HeadPruner(nn.Module):
    r"""A small first-order parser that leaves each word the heads $h$ with $\mu_{hm} \ge \theta \max_{h'} \mu_{h'm}$.

    $\mu$ are the marginals of its trees. At most so many heads of a word are left, the best ones, and the arc from the
    word before it always, so that there is always a tree: $0 \to 1 \to 2 \to \dots$

    Args:
        settings: Its options.
        trees: The trees.
        vocab: The indices.
        run: The folder of the training that it is part of, where its parameters are about to be read from one.

    Example:
        >>> from spigot_nlp.annotations import Trees
        >>> from spigot_nlp.batches import collate, encode
        >>> from spigot_nlp.data.sentence import Sentence
        >>> rain = Sentence(("Rain", "fell", "here"), tags=("NN", "VBD", "RB"), heads=(2, 0, 2))
        >>> vocab, trees = Vocab.of([rain]), {"syntax": Trees()}
        >>> pruner = HeadPruner(HeadPruning(dictionary=True), spigot.ProjectiveTrees(), vocab)
        >>> pruner.learn("syntax", [encode(rain, vocab, trees)])
        >>> pruner(collate([encode(rain, vocab)])).nonzero().tolist()       # the seen ones, and from the word before
        [[0, 0, 1], [0, 0, 2], [0, 1, 2], [0, 2, 1], [0, 2, 3]]
    """

    seen: Bool[Tensor, "tags tags"]

    def __init__(self, settings: HeadPruning, trees: AbstractTrees, vocab: Vocab, run: Path | None = None) -> None:
        super().__init__()
        self.settings, self.trees = settings, trees
        self.register_buffer("seen", torch.ones(len(vocab.tags), len(vocab.tags), dtype=torch.bool))
        if settings.learned:
            self.encoder = make_encoder(settings.encoder, vocab, run=run)
            self.arcs = PairScorer(self.encoder.outputs, settings.mlp, distance=True)

    def learn(self, stage: str, sentences: Sequence[Encoded]) -> None:
        """Note the tags of all arcs of the training trees; tags that training never saw rule nothing out."""
        if not self.settings.dictionary:
            return
        seen, unseen = torch.zeros_like(self.seen, device="cpu"), torch.ones(len(self.seen), dtype=torch.bool)
        for sentence in sentences:
            if stage in sentence.gold:
                heads = np.atleast_2d(sentence.gold[stage])[0]  # of labelled trees, relations stand below
                tags = torch.from_numpy(sentence.tokens[2])
                unseen[tags] = False
                seen[tags[torch.from_numpy(heads[1:])], tags[1:-1]] = True
        seen[unseen], seen[:, unseen] = True, True
        self.seen.copy_(seen)

    def loss(self, batch: Batch, gold: Parts) -> Values:
        """Negative log-likelihood of the gold trees among those possible."""
        scores, mask = self._scores(batch, noisy=True), self._possible(batch) | (gold > 0)
        entropy = float(self.settings.entropy)
        return spigot.crf_nll(scores, gold.to(scores.dtype), self.trees, mask=mask, entropy=entropy)

    @torch.no_grad()
    def forward(self, batch: Batch) -> Mask:
        """The arcs that are worth scoring."""
        possible = self._possible(batch)
        if not self.settings.learned:
            return possible
        marginals = self.trees.marginals(self._scores(batch, noisy=False), possible).masked_fill(~possible, -1)
        kept = marginals >= self.settings.threshold * marginals.amax(-2, keepdim=True)
        if batch.size > self.settings.top_heads:
            best = marginals.topk(self.settings.top_heads, dim=-2).indices
            kept &= torch.zeros_like(kept).scatter_(-2, best, True)
        return possible & (kept | _chain(batch))

    @torch.no_grad()
    def scores(self, batches: Iterable[tuple[Batch, Parts]]) -> dict[str, float]:
        """How many heads it leaves a word, how many of the gold ones, and how many its own best trees have.

        Args:
            batches: Sentences and their gold arcs.
        """
        arcs = words = left = right = 0
        for batch, gold in batches:
            kept, possible = self(batch), self._possible(batch)
            z = self.trees.argmax(self._scores(batch, noisy=False), possible)
            arcs, words = arcs + int(kept.sum()), words + int(batch.lengths.sum())
            left, right = left + int((kept & (gold > 0)).sum()), right + int((z * gold).sum())
        words = max(words, 1)
        return {"heads_a_word": arcs / words, "recall": 100 * left / words, "UAS": 100 * right / words}

    def _possible(self, batch: Batch) -> Mask:
        """The arcs between tags that some arc of training has, and those from the word before."""
        tags, exists = batch.tags[:, :-1], self.trees.mask(batch.lengths, batch.size)
        return exists & (self.seen[tags.unsqueeze(-1), tags.unsqueeze(-2)] | _chain(batch))

    def _scores(self, batch: Batch, *, noisy: bool) -> Float[Tensor, "batch n n"]:
        return self.arcs(self.encoder(batch, noisy=noisy)).squeeze(-1)


def _chain(batch: Batch) -> Bool[Tensor, "n n"]:
    """The arcs from each word to the next."""
    return torch.ones(batch.size - 1, dtype=torch.bool, device=batch.device).diag(1)


@final
class TreeDecision(AbstractDecision):
    """Trees, and the best relation of each arc.

    Args:
        annotation: What they are called.
        trees: The trees, without relations.
        best: The best relation of every arc, -1 where there is none.

    Example:
        >>> import torch
        >>> trees = torch.tensor([[[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])       # 0 -> 2 -> 1
        >>> best = torch.tensor([[[-1, 1, 1], [-1, -1, 0], [-1, 0, -1]]], dtype=torch.int32)
        >>> decision = TreeDecision(Trees(relations=("nsubj", "root")), trees, best)
        >>> decision.found([2])
        [{'heads': (2, 0), 'relations': ('nsubj', 'root')}]
        >>> decision.parts().nonzero().tolist()
        [[0, 0, 2, 1], [0, 2, 1, 0]]
    """

    def __init__(self, annotation: Trees, trees: Parts, best: Int[Tensor, "batch n n"]) -> None:
        self._annotation, self._trees, self._best = annotation, trees, best

    def parts(self) -> Parts:
        """The trees with their relations."""
        return self._parts

    @cached_property
    def _parts(self) -> Parts:
        z = self._trees.new_zeros(*self._trees.shape, len(self._annotation.relations or ()))
        return z.scatter_(-1, self._best.clamp(min=0).long().unsqueeze(-1), self._trees.unsqueeze(-1))

    def heads(self) -> ChosenHeads:
        """The head of each word, and its relation to it."""
        return ChosenHeads(*self._chosen)

    @cached_property
    def _chosen(self) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n"]]:
        heads = tree_heads(self._trees)
        relations = self._best.gather(1, heads.unsqueeze(1)).squeeze(1)
        return heads.masked_fill(relations < 0, -1), relations  # what has no relation is no word

    def found(self, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """The heads of each sentence, and the relations."""
        heads, relations = self._chosen
        names = self._annotation.relations or ()
        return [
            {
                self._annotation.name: tuple(row[1 : length + 1]),
                self._annotation.relation_field: tuple([names[k] for k in some[1 : length + 1]]),
            }
            for row, some, length in zip(heads.tolist(), relations.tolist(), lengths, strict=True)
        ]


def has_tree(trees: AbstractTrees, mask: Bool[Tensor, "n n"], length: int) -> bool:
    """Whether a mask leaves any tree over so many words.

    Example:
        >>> from spigot import ProjectiveTrees
        >>> mask = torch.tensor([[False, True, False], [False, False, True], [False, False, False]])
        >>> has_tree(ProjectiveTrees(), mask, 2), has_tree(ProjectiveTrees(), mask.T, 2)
        (True, False)
    """
    if not mask[:, 1 : length + 1].any(0).all():  # a word without any arc would pass for padding below
        return False
    try:
        trees.argmax(torch.zeros(mask.shape), mask)
    except NoStructureError:
        return False
    return True


def tree_mask(demands: Constraints, size: int) -> Bool[Tensor, "n n"]:
    """The arcs that the trees of a sentence may have.

    Example:
        >>> tree_mask(Constraints(heads=((1, 2),)), 3).int()        # no head but 2 is left to word 1
        tensor([[1, 0, 1],
                [1, 0, 1],
                [1, 1, 1]], dtype=torch.int32)
    """
    allowed = torch.ones(size, size, dtype=torch.bool)
    for word, head in demands.heads:
        allowed[:, word] = False
        allowed[head, word] = True
    for word, head in demands.not_heads:
        allowed[head, word] = False
    return allowed


def conflict(demands: Constraints, trees: AbstractTrees, length: int) -> Constraints:
    """Constraints that leave no tree, without those that are not to blame: each is dropped without which there is none.

    Args:
        demands: The constraints.
        trees: The trees.
        length: Words of the sentence.

    Example:
        >>> from spigot import ProjectiveTrees
        >>> conflict(Constraints(heads=((1, 2), (2, 1), (3, 2))), ProjectiveTrees(), 3).heads
        ((1, 2), (2, 1))
    """
    exists = trees.mask(torch.tensor([length]))[0]
    for name in ("not_heads", "heads"):
        for one in getattr(demands, name):
            fewer = replace(demands, **{name: tuple(other for other in getattr(demands, name) if other != one)})
            if not has_tree(trees, exists & tree_mask(fewer, length + 1), length):
                demands = fewer
    return demands


def no_tree(demands: Constraints, trees: AbstractTrees) -> str:
    """What to tell a user whose constraints leave no tree."""
    kind = ("projective tree" if trees.projective else "tree") + (" with a single root" if trees.single_root else "")
    return f"No {kind} meets these constraints together: {demands.describe(graphs=False)}; drop one of them."


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
    relation_mlp: Size = 64
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
