"""Who does the work: threads of this process, or the workers of a Dask cluster."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import typer

from dc2.cli.failures import CommandError
from dc2.cli.options import Engine

__all__ = ["check_engine", "workers"]


def check_engine(engine: Engine, scheduler: str | None) -> None:
    """Raise if a scheduler is named for an engine that has none."""
    if scheduler is not None and engine is not Engine.dask:
        raise typer.BadParameter("--scheduler names a Dask cluster: give --engine dask too.")


@contextmanager
def workers(engine: Engine, scheduler: str | None, jobs: int | None) -> Iterator[None]:
    """Connect to the Dask cluster at an address, or start one on this machine, until the block ends."""
    if engine is not Engine.dask:
        yield
        return
    import distributed  # installed, or the files could not have been opened

    with ExitStack() as stack:
        if scheduler is None:
            address: Any = distributed.LocalCluster(
                jobs,
                threads_per_worker=1 if jobs else None,
                dashboard_address=":0",
                silence_logs=logging.ERROR,
            )
            stack.enter_context(address)
        else:
            address = scheduler
        try:
            client = distributed.Client(address)
        except (OSError, ValueError) as error:
            raise CommandError(
                f"No Dask scheduler answers at {scheduler!r} ({error}). Check the address, such as tcp://host:8786."
            ) from error
        stack.enter_context(client)
        yield
