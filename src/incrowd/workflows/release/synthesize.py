"""Synthesize: a model of a table under a policy, in memory, from which rows are drawn again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import MODELS
from incrowd.workflows.release.prepare import load_for
from incrowd.workflows.release.publish import Released, carry_out

if TYPE_CHECKING:
    from incrowd.methods.synthesis.marginals.synthetic_model import SyntheticModel


@dataclass(frozen=True)
class Synthesized(Released):
    """A release of synthetic rows in memory, with its certificate and the model that the rows were drawn from."""

    @property
    def model(self) -> SyntheticModel:
        """The model: `model.sample(n)` draws rows again and again, at no cost."""
        model: SyntheticModel = self.result.model
        return model


def synthesize(data: object, policy: str | Path | Mapping[str, Any] | Policy) -> Synthesized:
    """Release a model of a file or a frame under a policy, in memory: charged once, drawn from as often as you like."""
    read = load_for(policy, data)
    if read.plan.method not in MODELS:
        raise InvalidParameter(
            f"a model is made by the methods {' and '.join(MODELS)}, and the policy says {read.plan.method!r}. "
            "Nothing was charged."
        )
    return Synthesized(*carry_out(read.plan, data, read))
