"""The commands, put together."""

from typing import Annotated

import typer

from dc2.cli.cluster import cluster
from dc2.cli.command import as_command
from dc2.cli.compress import compress
from dc2.cli.demo import demo
from dc2.cli.failures import told_plainly
from dc2.cli.info import info
from dc2.cli.predict import predict
from dc2.cli.report import report

__all__ = ["app"]

app = typer.Typer(
    help="Kernel-quality clusters of millions of rows: divide, compress, conquer, populate.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from dc2.versions import __version__

        print(f"dc2 {__version__}")
        raise typer.Exit


@app.callback()
def _dc2(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """The options of dc2 itself."""


for _command in (
    as_command(cluster),
    as_command(predict),
    as_command(compress),
    as_command(info),
    report,
    demo,
):
    app.command()(told_plainly(_command))
