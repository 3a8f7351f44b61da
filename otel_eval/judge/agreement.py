"""How far a judge agrees with people."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Of labels and judgements that are each a pass or not."""

    both_pass: int = 0
    both_fail: int = 0
    only_label: int = 0
    """Passes by their label, which the judge failed."""
    only_judge: int = 0
    """Fails by their label, which the judge passed."""

    @property
    def cases(self) -> int:
        return self.both_pass + self.both_fail + self.only_label + self.only_judge

    @property
    def right(self) -> int:
        return self.both_pass + self.both_fail

    @property
    def accuracy(self) -> float:
        return self.right / self.cases

    @property
    def kappa(self) -> float | None:
        """Cohen's: what is agreed beyond chance. None where chance alone would agree on all."""
        labelled = (self.both_pass + self.only_label) / self.cases
        judged = (self.both_pass + self.only_judge) / self.cases
        by_chance = labelled * judged + (1 - labelled) * (1 - judged)
        return None if by_chance == 1 else (self.accuracy - by_chance) / (1 - by_chance)


def agreement(pairs: Iterable[tuple[bool, bool]]) -> Agreement:
    """Of pairs (label, judgement), true where it is a pass."""
    counts = Counter(pairs)
    return Agreement(
        both_pass=counts[True, True],
        both_fail=counts[False, False],
        only_label=counts[True, False],
        only_judge=counts[False, True],
    )
