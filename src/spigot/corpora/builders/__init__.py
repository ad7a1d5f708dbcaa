"""Corpora that anyone can build: from clones of public repositories to the files that the configurations name.

What is read belongs to others and is not part of spigot. Each builder is one function and one command, `spigot corpus`.
"""

from spigot.corpora.builders.enhanced_ud import enhanced_ud
from spigot.corpora.builders.glove import glove
from spigot.corpora.builders.open_sdp import open_sdp
from spigot.corpora.builders.propbank_ewt import propbank_ewt
from spigot.corpora.builders.redwoods_dm import redwoods_dm
from spigot.corpora.builders.rt_polarity import rt_polarity
from spigot.corpora.builders.sources import Material, Origin, Watch
from spigot.corpora.builders.sst import sst
from spigot.corpora.builders.target import MANIFEST, Built, Part, Target

__all__ = [
    "MANIFEST",
    "Built",
    "Material",
    "Origin",
    "Part",
    "Target",
    "Watch",
    "enhanced_ud",
    "glove",
    "open_sdp",
    "propbank_ewt",
    "redwoods_dm",
    "rt_polarity",
    "sst",
]
