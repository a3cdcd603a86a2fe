"""Loss: what a recoding takes away, as the share of the values that a released label could stand for."""

from __future__ import annotations

from incrowd.quality.ladder import class_losses, mean_loss

__all__ = ["class_losses", "mean_loss"]
