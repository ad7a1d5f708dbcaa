"""Encoders: tokens to states."""

from spigot.encoders.bilstm import BiLSTMEncoder, BiLSTMSettings
from spigot.encoders.branch import BranchEncoder, BranchSettings
from spigot.encoders.encoder import (
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
from spigot.encoders.transformer import TransformerEncoder, TransformerSettings

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
