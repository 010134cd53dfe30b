"""The command ``python -m evaluation``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from evaluation.plan import EXPERIMENTS
from evaluation.run import run
from evaluation.sets import TITLES


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and run the evaluation."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation",
        description="Repeat the paper's evaluation and report on its claims.",
    )
    parser.add_argument("output", nargs="?", help="folder of the results (results/paper, or results/paper-quick)")
    parser.add_argument("--quick", action="store_true", help="reduced rows and runs: a few minutes")
    parser.add_argument("--runs", type=int, help="seeds per experiment (5; the paper has 100)")
    parser.add_argument("--data-home", help="folder of UCI's files (else DC2_DATA, then the user's cache)")
    parser.add_argument("--download", action="store_true", help="fetch missing files from UCI")
    parser.add_argument("--only", nargs="+", metavar="EXPERIMENT", choices=[one.name for one in EXPERIMENTS])
    parser.add_argument("--sets", nargs="+", metavar="SET", choices=list(TITLES))
    parser.add_argument("--skip", nargs="+", default=[], metavar="VARIANT", help="such as KASP")
    parser.add_argument(
        "--skip-longer", type=float, metavar="SECONDS", help="leave KASP out where one fit takes longer"
    )
    parser.add_argument(
        "--minutes", type=float, help="end within so many minutes; the next call goes on. 0: only the reports"
    )
    parser.add_argument("--jobs", type=int, help="threads and processes (all cores)")
    parser.add_argument("--docs", metavar="FILE", help="also write the report, with figures, to this Markdown file")
    given = parser.parse_args(arguments)
    report = run(
        given.output or ("results/paper-quick" if given.quick else "results/paper"),
        quick=given.quick,
        runs=given.runs,
        data_home=given.data_home,
        download=given.download,
        only=given.only,
        sets=given.sets,
        skip=given.skip,
        skip_longer=given.skip_longer,
        minutes=given.minutes,
        n_jobs=given.jobs,
        docs=given.docs,
        tell=lambda text: print(text, flush=True),
    )
    print(f"The report is {report}.")


if __name__ == "__main__":
    main()
