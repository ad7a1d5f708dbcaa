"""Encoders: tokens to states."""

from spigot.encoders.bilstm import BiLSTMEncoder, BiLSTMSettings
from spigot.encoders.encoder import (
    ENCODERS,
    AbstractEncoder,
    AnyEncoder,
    EncoderSettings,
    Precision,
    encoder_settings,
    make_encoder,
)

__all__ = [
    "ENCODERS",
    "AbstractEncoder",
    "AnyEncoder",
    "BiLSTMEncoder",
    "BiLSTMSettings",
    "EncoderSettings",
    "Precision",
    "encoder_settings",
    "make_encoder",
]
