"""Sums over all processes of ``torch.distributed``. Without it, or with a single process, nothing is sent."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def processes(group: Any = None) -> int:
    """The number of processes that share a batch."""
    if dist.is_available() and dist.is_initialized():
        return int(dist.get_world_size(group))
    return 1


class _Sum(torch.autograd.Function):
    """A sum over processes that is differentiated as one: every process needs what all of them lose by its part."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Any) -> Tensor:
        ctx.group = group
        total = tensor.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        total = gradient.clone()
        dist.all_reduce(total, group=ctx.group)
        return total, None


def summed(tensor: Tensor, group: Any = None) -> Tensor:
    """The sum of this tensor over all processes, with gradient."""
    if processes(group) == 1:
        return tensor
    apply: Any = _Sum.apply
    total: Tensor = apply(tensor, group)
    return total


def summed_counts(counts: Tensor, group: Any = None) -> Tensor:
    """The same for counts that were made on the CPU, which NCCL does not send."""
    if processes(group) == 1:
        return counts
    home = torch.device("cuda") if dist.get_backend(group) == "nccl" else torch.device("cpu")
    return summed(counts.to(home), group).to(counts.device)


def gathered(part: Any, group: Any = None) -> list[Any]:
    """The objects of all processes, in the order of their ranks."""
    if processes(group) == 1:
        return [part]
    parts: list[Any] = [None] * processes(group)
    dist.all_gather_object(parts, part, group=group)
    return parts
