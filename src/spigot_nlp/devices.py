"""Where to compute: devices by name, if this machine has them."""

import torch


def find_device(name: str | torch.device, called: str = "device") -> torch.device:
    """The device of this name, if this machine has it.

    Args:
        name: As torch calls it, or `auto` for the best there is. What is a device already is taken as it is.
        called: What an error calls the name.

    Raises:
        ValueError: If there is no such device.

    Example:
        >>> find_device("cpu")
        device(type='cpu')
        >>> find_device("abacus", "--device")
        Traceback (most recent call last):
        ValueError: --device is abacus; it must be cpu, cuda, cuda:1, mps or auto.
    """
    if isinstance(name, torch.device):
        return name
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if not isinstance(name, str):
        raise TypeError(f"{called} is {name!r}; it must be a name, such as cpu or cuda, or a device of torch.")
    if name == "auto":
        return torch.device(next(kind for kind, found in there.items() if found))
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in there:
        raise ValueError(f"{called} is {name}; it must be cpu, cuda, cuda:1, mps or auto.")
    if not there[device.type]:
        raise ValueError(f"{called} is {name}, and torch finds none here; use cpu.")
    count = torch.cuda.device_count() if device.type == "cuda" else 1
    if (device.index or 0) >= count:
        raise ValueError(f"{called} is {name}, and torch finds {count} here, counted from 0; use {device.type}.")
    return device
