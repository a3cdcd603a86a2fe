"""Control: the attack lab beside an assessment, with people who are not in the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from incrowd.errors import InvalidParameter
from incrowd.workflows.attack.attack import AttackReport, attack
from incrowd.workflows.attack.inputs import AttackInput
from incrowd.workflows.policy.policy import Policy


@dataclass(frozen=True)
class ControlGroup:
    """People who are not in the data: those of a file, or those who were held out of the release; or nobody."""

    address: str | None = None
    held_out: bool = False

    def __post_init__(self) -> None:
        if self.address is not None and self.held_out:
            raise InvalidParameter("outsiders are those of --control or those held out: give one of the two.")

    @property
    def there(self) -> bool:
        """Whether there is anybody."""
        return self.held_out or self.address is not None


NOBODY = ControlGroup()


def attacked(release: Path, policy: Policy, against: str | None, control: ControlGroup) -> AttackReport | None:
    """Run all attacks that apply against a release, beside a control group; None without one."""
    if not control.there:
        return None
    given = AttackInput(release, against, policy, outsiders=control.address, held_out=control.held_out)
    return attack(*given.opened())
