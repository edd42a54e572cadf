"""Why no fault is made at a place, and which test shows what would come of it."""

from tests.faults.places import Place

KEEPER = "a program of its own; what becomes of it is seen from outside"
AFTER = "only reached behind another fault"
RARE = "only reached with what no use here has"
REASONS: dict[str, tuple[str, str]] = {
    "tools/command_keeper.py": (KEEPER, "`tests/tools/test_shell.py`"),
    "models/local_server.py": (KEEPER, "`tests/models/test_local.py`"),
    "models/local_process.py": ("a model of real size", "`tests/models/test_local.py`"),
    "stores/redis.py": ("over a socket", "`tests/stores/contract/test_redis.py`"),
    "output.py": ("nobody is left to be told", "`tests/test_cli.py`"),
    "cli.py": ("started without a stderr", "`tests/test_cli.py`"),
    "protocol/frames.py": ("before there is anybody to tell", "`tests/e2e/test_exit.py`"),
    "protocol/watch.py": ("the end of a process whose order failed", "`tests/e2e/test_exit.py`"),
    "recording/recorder.py": (AFTER, "`tests/e2e/test_record.py`"),
    "stores/verify.py": (RARE, "`tests/stores/test_verify.py`"),
    "stores/search_index.py": (RARE, "`tests/stores/test_search.py`"),
    "stores/sqlite.py": (RARE, "`tests/stores/contract/test_sqlite.py`"),
    "stores": (AFTER, "`tests/stores/test_fault_places.py`"),
    "tools/matcher.py": ("a program of its own", "`tests/tools/test_search.py`"),
    "tools/replacing.py": (RARE, "`tests/tools/test_killed_edits.py`"),
    "tools/git_settings.py": (RARE, "`tests/tools/test_git_settings.py`"),
    "tools/globs.py": (RARE, "`tests/tools/test_globs.py`"),
    "tools/workspace.py": (RARE, "`tests/tools/test_workspace.py`"),
    "tools/undo.py": (RARE, "`tests/tools/test_undo.py`"),
    "tools": ("an editor with unsaved text", "`tests/e2e/test_edit_tools.py`"),
    "agents/command_folders.py": (RARE, "`tests/agents/test_command_folders.py`"),
    "agents/command_order.py": (RARE, "`tests/agents/test_command_order.py`"),
    "agents/settings_file.py": (RARE, "`tests/test_config.py`"),
    "chat/keyboard.py": ("a real keyboard", "`tests/e2e/test_chat.py`"),
    "chat/past_lines.py": ("after 2,000 lines", "`tests/chat/test_past_lines.py`"),
    "models/part_file.py": ("a download that goes on", "`tests/models/test_local_models.py`"),
    "models/transport.py": ("reads what Python brings", "`tests/models/test_transport.py`"),
    "models/weights.py": ("reads what Tiro brings", "`tests/models/test_local.py`"),
    "protocol/editor.py": ("a long text for any LSP client", "`tests/protocol/test_editor.py`"),
}  # fmt: skip
"""By file or folder, the nearest one counts."""


def reason_for(place: Place) -> tuple[str, str]:
    """Why, and the test; raises KeyError for a place that nobody has thought of."""
    return REASONS.get(place.file) or REASONS[place.file.partition("/")[0]]
