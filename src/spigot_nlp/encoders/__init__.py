"""Encoders: tokens to states."""

from spigot_nlp.encoders.bilstm import BiLSTMEncoder, BiLSTMSettings
from spigot_nlp.encoders.branch import BranchEncoder, BranchSettings
from spigot_nlp.encoders.encoder import (
    ENCODERS,
    READING,
    AbstractEncoder,
    AnyEncoder,
    EncoderSettings,
    Precision,
    WordTables,
    encoder_settings,
    make_encoder,
)
from spigot_nlp.encoders.transformer import TransformerEncoder, TransformerSettings

__all__ = [
    "ENCODERS",
    "READING",
    "AbstractEncoder",
    "AnyEncoder",
    "BiLSTMEncoder",
    "BiLSTMSettings",
    "BranchEncoder",
    "BranchSettings",
    "EncoderSettings",
    "Precision",
    "TransformerEncoder",
    "TransformerSettings",
    "WordTables",
    "encoder_settings",
    "make_encoder",
]
