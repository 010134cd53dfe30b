"""The reference of the command line, and its man page, made from the commands themselves.

``python docs/_pages/commands.py FILE`` writes the man page.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Command", "command_reference", "commands", "man_page"]


@dataclass(frozen=True)
class Command:
    """What a command says of itself: its purpose, an example, and (name, help) of arguments and options."""

    name: str
    purpose: str
    example: str
    arguments: list[tuple[str, str]]
    options: list[tuple[str, str]]


def commands() -> Iterator[Command]:
    """The commands of dc2, in the order in which ``dc2 --help`` shows them."""
    import typer

    from dc2.cli.app import app

    for name, command in typer.main.get_command(app).commands.items():
        purpose, _, example = (command.help or "").partition("Example:")
        given = {True: [], False: []}
        for parameter in command.params:
            is_argument = parameter.param_type_name == "argument"
            given[is_argument].append((_spelling(parameter, is_argument), _help(parameter)))
        yield Command(name, " ".join(purpose.split()), " ".join(example.split()), given[True], given[False])


def _spelling(parameter: Any, is_argument: bool) -> str:
    metavar = parameter.metavar or ("" if getattr(parameter, "is_flag", False) else parameter.name.upper())
    if is_argument:
        return metavar
    return ", ".join([*parameter.opts, *parameter.secondary_opts]) + f" {metavar}".rstrip()


def _help(parameter: Any) -> str:
    text = " ".join((getattr(parameter, "help", None) or "").split())
    default = parameter.default
    told = isinstance(default, str | int | float) and not isinstance(default, bool) and str(default) != ""
    return f"{text} Default: {getattr(default, 'value', default)}." if told else text


def command_reference() -> str:
    """The text of the page, in Markdown."""
    parts = [
        "# Command-line reference",
        "What `dc2 COMMAND --help` says, made from the commands themselves. [The command line](../cli.md) tells the"
        " story.",
    ]
    for command in commands():
        parts += [f"## dc2 {command.name}", command.purpose]
        parts += [f"```console\n$ {command.example}\n```"] if command.example else []
        parts += [_table(title, rows) for title, rows in _tables(command)]
    return "\n\n".join(parts) + "\n"


def _tables(command: Command) -> list[tuple[str, list[tuple[str, str]]]]:
    both = [("argument", command.arguments), ("option", command.options)]
    return [(title, rows) for title, rows in both if rows]


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| `{name}` | {_in_cell(text)} |" for name, text in rows]
    return "\n".join([f"| {title} | meaning |", "|---|---|", *lines])


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")


def man_page() -> str:
    """The man page, in the language of man pages."""
    from dc2.versions import __version__

    lines = [f'.TH DC2 1 "" "dc2 {__version__}"', ".SH NAME", r"dc2 \- clusters in files of any size"]
    lines += [".SH SYNOPSIS", r".B dc2 \fICOMMAND\fR [\fIOPTION\fR]...", ".SH COMMANDS"]
    for command in commands():
        lines += [f".SS dc2 {command.name}", _roff(command.purpose)]
        for name, text in [*command.arguments, *command.options]:
            lines += [".TP", f".B {_roff(name)}", _roff(text)]
        lines += [".PP", f"Example: {_roff(command.example)}"] if command.example else []
    lines += [".SH EXIT STATUS", "0: done; 1: an error; 2: wrong usage; 130: interrupted."]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(man_page(), "utf-8")
