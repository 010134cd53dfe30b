"""What a campaign of labels is to do, and what it did: shares of numbered cases, and a log with a line for each."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Share:
    """Every ``step``-th case from ``first`` on, before ``end``; without an end, for ever."""

    seed: int
    first: int = 0
    end: int | None = None
    step: int = 1

    def __contains__(self, number: int) -> bool:
        inside = self.first <= number and (self.end is None or number < self.end)
        return inside and (number - self.first) % self.step == 0

    def numbers(self) -> Iterator[int]:
        return iter(
            itertools.count(self.first, self.step) if self.end is None else range(self.first, self.end, self.step)
        )

    def parts(self, n_parts: int) -> list["Share"]:
        """Deal the cases to so many, none to two of them."""
        return [
            Share(self.seed, self.first + part * self.step, self.end, self.step * n_parts) for part in range(n_parts)
        ]

    def arguments(self) -> list[str]:
        """The share, as passed to a process."""
        words = ["--seed", str(self.seed), "--first", str(self.first), "--step", str(self.step)]
        return words if self.end is None else [*words, "--end", str(self.end)]


@dataclass
class Outcome:
    """What a campaign found."""

    cases: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Log:
    """A file with a line of JSON for every case; several processes may write at once."""

    path: Path

    def write(self, seed: int, number: int, broken: list[str], refused: bool = False) -> None:
        line = json.dumps({"seed": seed, "case": number, "broken": broken, "refused": refused})
        with self.path.open("ab", buffering=0) as lines:  # one write, which the system does not cut
            lines.write(f"{line}\n".encode())

    def missing(self, share: Share) -> Iterator[int]:
        """The cases of the share that have no line yet."""
        done = {line["case"] for line in self._lines(share)}
        return (number for number in share.numbers() if number not in done)

    def outcome(self, share: Share) -> Outcome:
        lines = {line["case"]: line for line in self._lines(share)}
        failures = [
            f"case {number} of seed {share.seed}: {'; '.join(line['broken'])}"
            for number, line in sorted(lines.items())
            if line["broken"]
        ]
        return Outcome(len(lines), sum(line["refused"] for line in lines.values()), failures)

    def _lines(self, share: Share) -> list[dict]:
        if not self.path.exists():
            return []
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [line for line in lines if line["seed"] == share.seed and line["case"] in share]
