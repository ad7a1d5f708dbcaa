"""Sizes, losses and optimisers of the models."""

from typing import Annotated, Literal

from pydantic import Field

from spigot.config.values import Count, Positive, Rate, Values


class Encoder(Values):
    """Embeddings and BiLSTM (paper-wide defaults: 100-dimensional words, two layers of 200).

    Attributes:
        interleaved: Whether the second layer reads both directions of the first; the release runs two independent
            stacks.
        word_dropout: $\\alpha$: a word becomes unknown with probability $\\alpha/(\\alpha+\\text{count})$.
        drop_all: Whether the lemma and the tag of a dropped word go with it.
        lemma_from_form: Whether the lemma table is indexed by the word form.
        dropout: Share of units left out of the inputs and of the states, one mask a sentence.
        input_dropout: Share of units left out of each token's vector.
        layers: Layers of the BiLSTM; with 0 there is none, and words meet only through a structure.
        fixed_vectors: Whether pretrained word vectors stay as they are; other words are learned.
    """

    word_dim: Positive = 100
    lemma_dim: Count = 50
    tag_dim: Count = 50
    hidden: Positive = 200
    layers: Count = 2
    interleaved: bool = False
    word_dropout: Annotated[float, Field(ge=0)] = 0.25
    drop_all: bool = False
    lemma_from_form: bool = False
    dropout: Rate = 0.0
    input_dropout: Rate = 0.0
    fixed_vectors: bool = False


class Optimiser(Values):
    """Adam, with its own gradient clipping and annealing for each model."""

    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    max_norm: Annotated[float, Field(gt=0)] = 1.0
    weight_decay: Rate = 1e-6
    anneal_every: Count = 10
    anneal_by: Annotated[float, Field(gt=0, le=1)] = 0.5


class Syntax(Values):
    """The syntactic parser.

    Attributes:
        trees: What it decodes into.
        single_root: Whether exactly one word hangs on the root.
        mlp: Hidden units of the arc scorer.
        mlp_layers: Its hidden layers.
        loss: The structured hinge, or the likelihood of a CRF over trees.
    """

    encoder: Encoder = Encoder()
    trees: Literal["projective", "nonprojective"] = "projective"
    single_root: bool = True
    mlp: Positive = 100
    mlp_layers: Annotated[int, Field(ge=1, le=3)] = 1
    loss: Literal["hinge", "crf"] = "hinge"
    keep: Count = Field(default=0, description="Arc pruning: the best heads a word keeps; 0 keeps all.")
    optimiser: Optimiser = Optimiser(anneal_every=5)


class Pruning(Values):
    """Which arcs and labels of the semantic parser are worth scoring."""

    dictionary: bool = True
    distance: bool = True
    rare_role: Count = 30
    learned: bool = True
    threshold: Annotated[float, Field(ge=0, lt=1)] = 1e-4
    keep: Positive = 20
    epochs: Positive = 3
    encoder: Encoder = Encoder(word_dim=32, lemma_dim=16, tag_dim=16, hidden=32, layers=1)
    mlp: Positive = 32
    optimiser: Optimiser = Optimiser(max_norm=5.0)


class Semantics(Values):
    """The semantic parser.

    Attributes:
        loss: The structured hinge with costs, or the log loss of the same model without determinism.
        false_positive: Cost of a labelled arc too many (hinge).
        false_negative: Cost of a labelled arc missed (hinge).
        determinism: Whether roles that no training predicate repeats may be used once only.
    """

    encoder: Encoder = Encoder()
    mlp: Positive = 100
    mlp_layers: Annotated[int, Field(ge=1, le=3)] = 2
    loss: Literal["hinge", "log"] = "hinge"
    false_positive: Annotated[float, Field(ge=0)] = 0.4
    false_negative: Annotated[float, Field(ge=0)] = 0.6
    determinism: bool = True
    pruning: Pruning = Pruning()
    optimiser: Optimiser = Optimiser(anneal_every=10)


Structure = Literal["graphs", "trees", "gold", "left", "right", "random"]


class Classifier(Values):
    """The sentence classifier.

    Attributes:
        structure: What it reads beside the words: semantic `graphs` or dependency `trees` of an intermediate parser;
            or trees that are not learned: `gold` ones, `left`-branching chains in which each word hangs on the next,
            `right`-branching ones, or `random` ones.
        latent: Whether the parser is trained by the labels alone.
        roles: How many roles latent graphs have.
        reader: How it reads them: each word beside the average of its `heads`, or in `rounds` of messages from
            arguments to heads, after which the root decides.
        rounds: How many rounds.
        mlp: Hidden units.
        dropout: Share of hidden units left out.
    """

    structure: Structure = "graphs"
    latent: bool = False
    roles: Positive = 4
    reader: Literal["heads", "rounds"] = "heads"
    rounds: Positive = 5
    encoder: Encoder = Encoder(hidden=150, layers=1, word_dropout=0.0, input_dropout=0.5, fixed_vectors=True)
    mlp: Positive = 100
    dropout: Rate = 0.2
    optimiser: Optimiser = Optimiser(max_norm=5.0, anneal_every=5)
