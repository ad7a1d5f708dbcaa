"""How one stage sees the structure of another."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from spigot_nlp.wires import READERS, AbstractReader, ChosenHeads
from spigot_nlp.wires.readers import Embedded, HeadReader, Heads, Roles, RoundReader, Rounds, reader_settings

BATCH, N, INPUTS, WIDTH = 2, 4, 3, 5


class Trees:
    """Arcs without labels."""

    name, arc_labels, choices = "syntax", 0, None

    def arcs(self, z: Tensor) -> tuple[Tensor, None]:
        return z, None


class Graphs:
    """Arcs, and the same by label."""

    name, arc_labels, choices = "semantics", 2, None

    def arcs(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return z[..., 0], z[..., 1:]


class Choices:
    """One of six, for each word or for the sentence."""

    name, arc_labels, choices = "tagger", None, 6

    def arcs(self, z: Tensor) -> Any:
        raise TypeError("no arcs")


SHAPES = {"trees": (N, N), "graphs": (N, N, 3), "tags": (N, 6), "class": (6,)}
SOURCES: dict[str, Any] = {"trees": Trees(), "graphs": Graphs(), "tags": Choices(), "class": Choices()}
READ = [
    (reader, kind)
    for reader, kinds in {
        "heads": ("trees", "graphs"),
        "roles": ("trees", "graphs"),
        "rounds": ("trees", "graphs"),
        "embedded": ("tags", "class"),
    }.items()
    for kind in kinds
]


def made(reader: str, kind: str, **options: Any) -> AbstractReader:
    settings = reader_settings({"name": reader, **options})
    found = READERS[reader](settings, INPUTS, WIDTH, SOURCES[kind]).double()
    for parameter in found.parameters():  # biases start at zero
        torch.nn.init.normal_(parameter)
    return found


def example(kind: str) -> tuple[Tensor, Tensor]:
    """States, and a soft structure; no word has so many heads that their number is divided by."""
    states = torch.randn(BATCH, N, INPUTS, dtype=torch.float64)
    return states, 0.2 * torch.rand(BATCH, *SHAPES[kind], dtype=torch.float64)


@pytest.mark.parametrize(("reader", "kind"), READ)
def test_what_is_read_is_differentiable_in_z(reader: str, kind: str) -> None:
    read, source, (states, z) = made(reader, kind), SOURCES[kind], example(kind)
    assert gradcheck(lambda h, z: read(h, z, source), (states.requires_grad_(), z.requires_grad_()))
    (gradient,) = torch.autograd.grad(read(states, z, source).sum(), z)
    assert gradient.any()


@pytest.mark.parametrize(("reader", "kind"), READ)
def test_states_have_the_length_that_was_promised(reader: str, kind: str) -> None:
    read, (states, z) = made(reader, kind), example(kind)
    found = read(states, z, SOURCES[kind])
    assert found.shape == (BATCH, N, read.outputs)
    assert read.pools == (reader == "rounds")
    alone = torch.cat([read(states[k : k + 1], z[k : k + 1], SOURCES[kind]) for k in range(BATCH)])
    torch.testing.assert_close(found, alone)


@pytest.mark.parametrize("reader", ["heads", "roles", "rounds"])
def test_arcs_are_asked_of_a_stage_that_has_them(reader: str) -> None:
    with pytest.raises(ValueError, match=f"the reader '{reader}' reads arcs, and the stage tagger has none; use embed"):
        made(reader, "tags")


@pytest.mark.parametrize("kind", ["trees", "graphs"])
def test_choices_are_asked_of_a_stage_that_makes_them(kind: str) -> None:
    name = SOURCES[kind].name
    with pytest.raises(ValueError, match=f"the reader 'embedded' reads choices, and the stage {name} makes none"):
        made("embedded", kind)


def test_heads_are_equation_7() -> None:
    read, (states, z) = made("heads", "trees"), example("trees")
    assert isinstance(read, Heads)
    found = read(states, z, Trees())
    for b in range(BATCH):
        for j in range(N):
            head = sum(float(z[b, i, j]) * states[b, i] for i in range(N))
            torch.testing.assert_close(found[b, j], torch.cat((states[b, j], head)))  # pyright: ignore
    states, graph = example("graphs")
    torch.testing.assert_close(read(states, graph, Graphs()), read(states, graph[..., 0], Trees()))


@pytest.mark.parametrize("relation_dim", [0, 7])
def test_one_head_for_each_word_is_read_as_its_tree_is(relation_dim: int) -> None:
    heads, labels = torch.tensor([[-1, 2, 0, 1], [-1, 0, -1, -1]]), torch.tensor([[-1, 1, 0, 0], [-1, 1, -1, -1]])
    read, states = made("heads", "graphs", relation_dim=relation_dim), example("graphs")[0]
    z = torch.zeros(BATCH, N, N, 3, dtype=torch.float64)
    for sentence, word in (heads >= 0).nonzero().tolist():
        head, label = heads[sentence, word], labels[sentence, word]
        z[sentence, head, word, 0] = z[sentence, head, word, 1 + label] = 1
    with torch.no_grad():
        after = read.after_heads(states, ChosenHeads(heads, labels))
        assert after is not None
        assert torch.equal(after, read(states, z, SOURCES["graphs"]))
    bare = read.after_heads(states, ChosenHeads(heads))
    assert (bare is None) == bool(relation_dim)  # relations cannot be read where there are none
    assert made("roles", "graphs").after_heads(states, ChosenHeads(heads, labels)) is None


def test_roles_and_rounds_are_those_of_a_classifier() -> None:
    for kind, labels in (("trees", 0), ("graphs", 2)):
        read, (states, z) = made("roles", kind), example(kind)
        assert isinstance(read, Roles)
        assert isinstance(read.read, HeadReader)
        assert (0 if read.read.roles is None else len(read.read.roles)) == labels
        torch.testing.assert_close(read(states, z, SOURCES[kind]), read.read(states, *SOURCES[kind].arcs(z)))
    read, (states, z) = made("rounds", "graphs", rounds=3), example("graphs")
    assert isinstance(read, Rounds)
    assert isinstance(read.read, RoundReader)
    assert read.read.rounds == 3
    torch.testing.assert_close(read(states, z, Graphs()), read.read(states, z[..., 0]))


def test_a_choice_is_a_vector_beside_each_word() -> None:
    for kind in ("tags", "class"):
        read, (states, z) = made("embedded", kind, dim=2), example(kind)
        assert isinstance(read, Embedded)
        assert read.vectors.shape == (6, 2)
        found = read(states, z, Choices())
        for b in range(BATCH):
            for i in range(N):
                weights = z[b, i] if kind == "tags" else z[b]
                vector = sum(weights[k] * read.vectors[k] for k in range(6))
                torch.testing.assert_close(found[b, i], torch.cat((states[b, i], vector)))  # pyright: ignore


def test_every_reader_is_checked() -> None:
    assert {name for name, kind in READERS.items() if kind.__module__.startswith(("spigot.", "spigot_nlp."))} == {
        r for r, _ in READ
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("hats", "there is no reader 'hats'; there are heads, roles, rounds, embedded"),
        ("head", "there is no reader 'head'; did you mean heads?"),
        (7, "a reader is its name, or a table with its name and options, not 7"),
        ({"rounds": 2}, "a reader is its name, or a table"),
        ({"name": "heads", "rounds": 2}, "rounds"),
        ({"name": "rounds", "rounds": 0}, "rounds"),
        ({"name": "embedded", "dim": 0}, "dim"),
    ],
)
def test_what_no_reader_has_is_refused(table: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        reader_settings(table)
