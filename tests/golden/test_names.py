"""The public names are those that they were, and called alike."""

from tests.golden import stored
from tests.golden.names import public_names


def test_public_names() -> None:
    assert public_names() == stored.read_json(stored.FOLDER / "names.json")
