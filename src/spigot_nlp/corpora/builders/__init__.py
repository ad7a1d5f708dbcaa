"""Corpora that anyone can build: from clones of public repositories to the files that the configurations name.

What is read belongs to others and is not part of spigot. Each builder is one function and one command, `spigot corpus`.
"""

from spigot_nlp.corpora.builders.enhanced_ud import enhanced_ud
from spigot_nlp.corpora.builders.glove import glove
from spigot_nlp.corpora.builders.open_sdp import open_sdp
from spigot_nlp.corpora.builders.propbank_ewt import propbank_ewt
from spigot_nlp.corpora.builders.redwoods_dm import redwoods_dm
from spigot_nlp.corpora.builders.rt_polarity import rt_polarity
from spigot_nlp.corpora.builders.sources import Material, Origin, Watch
from spigot_nlp.corpora.builders.sst import sst
from spigot_nlp.corpora.builders.target import MANIFEST, Built, Part, Target

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
