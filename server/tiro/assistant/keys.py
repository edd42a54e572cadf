"""Providers with their keys, for which a command may have to run: once, for all who wait."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from tiro.errors import ModelNotConfiguredError
from tiro.models.key_command import KEY_COMMAND_SECONDS, KeyCommand
from tiro.models.model import ProviderSettings


class Keys:
    """The configured providers, each with its key as soon as there is one."""

    def __init__(
        self,
        providers: Mapping[str, ProviderSettings],
        commands: Mapping[str, str | list[str]],
    ) -> None:
        self.settings = dict(providers)
        self.on_key: Callable[[str], None] = lambda key: None
        """Hears every key that a command printed, so that it is kept out of files."""
        self._commands_of = dict(commands)
        self._running: dict[str, asyncio.Task[ModelNotConfiguredError | None]] = {}
        """The key commands that run, by provider."""
        self._started: set[KeyCommand] = set()

    def is_awaited(self, name: str) -> bool:
        """Whether a command has still to print this provider's key."""
        return name in self._commands_of

    async def with_key(self, name: str, seconds: float = KEY_COMMAND_SECONDS) -> ProviderSettings:
        """The provider with its key, for which a command may have to run.

        Raises ModelNotConfiguredError where it prints none.
        """
        if (command := self._commands_of.get(name)) is None:
            return self.settings[name]
        if name not in self._running:
            self._running[name] = asyncio.create_task(self._keep_key(name, command, seconds))
        error = await asyncio.shield(self._running[name])
        if error is not None:
            tried = [{"provider": name, "reason": str(error)}]
            raise ModelNotConfiguredError(str(error), tried=tried) from error
        return self.settings[name]

    def end(self) -> None:
        """End the commands that run."""
        for command in self._started:
            command.end()

    async def _keep_key(
        self, name: str, command: str | list[str], seconds: float
    ) -> ModelNotConfiguredError | None:
        """Run a command and keep its key, whoever still waits for it; why there is none."""
        running = KeyCommand(command, seconds)
        self._started.add(running)
        try:
            key = await asyncio.to_thread(running.run)
        except ModelNotConfiguredError as error:
            return error
        finally:
            self._running.pop(name)
            self._started.discard(running)
        del self._commands_of[name]
        self.settings[name] = msgspec.structs.replace(self.settings[name], api_key=key)
        self.on_key(key)
        return None
