"""Systems of stages, and a trained system as a function of text. What only some ask for has to be named in full."""

from spigot_nlp.models.parser import Parser
from spigot_nlp.models.system import Answer, Passed, System, Wire

__all__ = ["Answer", "Parser", "Passed", "System", "Wire"]
