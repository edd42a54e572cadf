"""`tiro local`: embedded models."""

import argparse
import contextlib
from typing import TYPE_CHECKING

from tiro import output
from tiro.arguments import LOCAL_EXAMPLES, Commands, add_command, add_group
from tiro.errors import ModelError, ModelNotConfiguredError, TiroError
from tiro.exits import Exit, as_failure
from tiro.screen_text import flat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tiro.models.local import LocalModels
    from tiro.models.model import Progress

MODEL_ROW = "{} {:<22} {:>9}  {:<10}  {}\n"


def add_local(commands: Commands) -> None:
    """The command `local` and those in it."""
    group = add_group(commands, "local", "embedded models", LOCAL_EXAMPLES)
    add_command(group, "list", local_list, "which there are, * answers", LOCAL_EXAMPLES)
    pull = add_command(group, "pull", local_pull, "bring one", LOCAL_EXAMPLES)
    pull.add_argument("name", nargs="?", help="a known name, a GGUF file, or an address of one")
    use = add_command(group, "use", local_use, "choose the one that answers", LOCAL_EXAMPLES)
    use.add_argument("name", help="as `tiro local list` tells it")
    remove = add_command(group, "remove", local_remove, "delete one's file", LOCAL_EXAMPLES)
    remove.add_argument("name", help="as `tiro local list` tells it")


def local_list(given: argparse.Namespace) -> int:
    """The local models that are known or brought."""
    output.headings(MODEL_ROW, " ", "NAME", "SIZE", "STATE", "ABOUT")
    with _local_models() as models:
        for row in models.list():
            mark = "*" if row.is_in_use else " "
            size = f"{row.bytes / 1e6:,.0f} MB"
            name, about = flat(row.name), flat(row.about)
            output.write(MODEL_ROW.format(mark, name, size, row.state, about))
    return Exit.DONE


def local_pull(given: argparse.Namespace) -> int:
    """Bring a local model, with its progress on stderr."""
    import asyncio

    from tiro.shown_turn import StatusLine

    line = StatusLine()
    with _local_models() as models:
        try:
            name = asyncio.run(models.pull(given.name, lambda step: line.show(_words_of(step))))
        finally:
            line.clear()
    output.write(f"{name} is ready\n")
    return Exit.DONE


def local_use(given: argparse.Namespace) -> int:
    """Choose the local model that answers when none is named."""
    with _local_models() as models:
        models.use(given.name)
    output.write(f"{given.name} answers from now on when a local model is asked\n")
    return Exit.DONE


def local_remove(given: argparse.Namespace) -> int:
    """Take a local model's file away."""
    with _local_models() as models:
        if not models.remove(given.name):
            if models.known(given.name):
                raise TiroError(f"{given.name} is not here, nothing to remove")
            raise TiroError(f"There is no local model {given.name!r}; `tiro local list` shows all")
    output.write(f"{given.name} is removed\n")
    return Exit.DONE


@contextlib.contextmanager
def _local_models() -> "Iterator[LocalModels]":
    """The local models; what is wrong with one of them is a failure, not the want of a model."""
    from tiro.config.directories import cache_directory
    from tiro.models.local import LocalModels

    with as_failure(ModelNotConfiguredError, ModelError):
        yield LocalModels(cache_directory())


def _words_of(step: "Progress") -> str:
    share = "" if step.fraction is None else f", {round(step.fraction * 100)} %"
    return f"{step.message}{share}"
