class Oracle:
    """Placeholder until the module is written."""
