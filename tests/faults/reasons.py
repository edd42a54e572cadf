"""Why no fault is made at a place, and which test shows what would come of it."""

from tests.faults.places import Place

REASONS: list[tuple[str, str, list[str]]] = [
    (
        "only reached with what no use here has",
        "`tests/agents/test_command_order.py`",
        [
            "agents/command_order.py `_hold_links` os.walk",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/test_config.py`",
        [
            "agents/settings_file.py `not_there` os.path.exists",
        ],
    ),
    (
        "a cache, after three large turns",
        "`tests/assistant/test_calibrations.py`",
        [
            "assistant/calibrations.py `save` make_directories",
            "assistant/calibrations.py `save` remove_stale",
            "assistant/calibrations.py `save` replace_file",
        ],
    ),
    (
        "a real keyboard",
        "`tests/e2e/test_chat.py`",
        [
            "chat/keyboard.py `_read` os.read",
        ],
    ),
    (
        "after 2,000 lines",
        "`tests/chat/test_past_lines.py`",
        [
            "chat/past_lines.py `_replace` replace_file",
        ],
    ),
    (
        "started without a stderr",
        "`tests/test_cli.py`",
        [
            "cli.py `_run` open",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/e2e/test_imports.py`",
        [
            "commands/imports.py `_files` os.walk",
            "commands/imports.py `_on_stdin` Path(file).write_bytes",
        ],
    ),
    (
        "a model of real size",
        "`tests/models/test_local.py`",
        [
            "models/local_process.py `_start` asyncio.create_subprocess_exec",
        ],
    ),
    (
        "a program of its own; what becomes of it is seen from outside",
        "`tests/models/test_local.py`",
        [
            "models/local_server.py `end_with_stdin` os.read",
            "models/local_server.py `main` os.dup",
            "models/local_server.py `main` os.dup2",
            "models/local_server.py `main` os.write",
            "models/local_server.py `main` os.write (2)",
        ],
    ),
    (
        "pip, which ends in its own ways",
        "`tests/models/test_local_models.py`",
        [
            "models/package_index.py `_lines_of` asyncio.create_subprocess_exec",
            "models/package_index.py `_member` zipfile.ZipFile",
            "models/package_index.py `_pip_download` os.listdir",
            "models/package_index.py `from_index` tempfile.TemporaryDirectory",
        ],
    ),
    (
        "a download that goes on",
        "`tests/models/test_local_models.py`",
        [
            "models/part_file.py `version` self._version.exists",
            "models/part_file.py `version` self._version.read_text",
        ],
    ),
    (
        "reads what Python brings",
        "`tests/models/test_transport.py`",
        [
            "models/transport.py `_open` httpx.create_ssl_context",
        ],
    ),
    (
        "reads what Tiro brings",
        "`tests/models/test_local.py`",
        [
            "models/weights.py `chat_template_of` ….read_text",
        ],
    ),
    (
        "nobody is left to be told",
        "`tests/test_cli.py`",
        [
            "output.py `_drop` os.dup2",
            "output.py `_drop` os.open",
        ],
    ),
    (
        "a long text for any LSP client",
        "`tests/protocol/test_editor.py`",
        [
            "protocol/shown_texts.py `write` path.chmod",
            "protocol/shown_texts.py `write` path.write_text",
            "protocol/shown_texts.py `write` tempfile.mkdtemp",
            "protocol/shown_texts.py `close` shutil.rmtree",
        ],
    ),
    (
        "before there is anybody to tell",
        "`tests/e2e/test_exit.py`",
        [
            "protocol/frames.py `keep_stdout` open",
            "protocol/frames.py `keep_stdout` os.dup2 (2)",
        ],
    ),
    (
        "the end of a process whose order failed",
        "`tests/e2e/test_exit.py`",
        [
            "protocol/watch.py `descendants` children.read_text",
        ],
    ),
    (
        "only reached behind another fault",
        "`tests/e2e/test_record.py`",
        [
            "recording/recorder.py `_give_up` os.ftruncate",
        ],
    ),
    (
        "only reached behind another fault",
        "`tests/stores/test_fault_places.py`",
        [
            "stores/autosave.py `_write_idle_snapshot` temporary_file",
            "stores/blobs.py `is_whole` read_file",
            "stores/idle_files.py `_refuse_other` is_empty",
            "stores/idle_files.py `locked` journal.exists",
            "stores/exports.py `_may_be_replaced` read_file",
            "stores/files.py `replace` temporary_file",
            "stores/journal.py `_open` os.fchmod",
            "stores/journal.py `append` self._disk.truncate",
            "stores/ledger.py `_remove_unnamed` self._disk.unlink",
            "stores/ledger.py `prune` replace_file",
            "stores/lock.py `directory_lock` os.open",
            "stores/lock.py `read_holder` path.read_bytes",
            "stores/reading.py `_is_same` signature_at",
            "stores/reading.py `take` journal.exists",
            "stores/saving.py `_save_whole` temporary_file",
            "stores/saving.py `_set_aside` copy_aside",
            "stores/session_files.py `_set_leftover_aside` set_aside",
            "stores/session_files.py `are_as_read` signature_at",
            "stores/session_files.py `are_free` journal.exists",
            "stores/session_files.py `empty_journal` copy_aside",
            "stores/session_files.py `journal_is_same` signature_at",
            "stores/turns.py `try_lock` self.files.journal.exists",
        ],
    ),
    (
        "a delete that is taken back, or one behind another fault",
        "`tests/stores/test_trash_files.py`",
        [
            "stores/blobs.py `_bring` read_file",
            "stores/blobs.py `_bring` replace_file",
            "stores/file_trash.py `_bring` replace_file",
            "stores/file_trash.py `_claim` is_empty",
            "stores/file_trash.py `_claim_file` is_empty",
            "stores/file_trash.py `_claim_file` self._home.disk.open",
            "stores/file_trash.py `_deleted` entry.folder.rglob",
            "stores/file_trash.py `_deleted` path.is_file",
            "stores/file_trash.py `_folder_at` os.listdir",
            "stores/file_trash.py `_folders` os.listdir",
            "stores/file_trash.py `_move` disk.unlink",
            "stores/file_trash.py `_move` read_file",
            "stores/file_trash.py `_move` replace_file",
            "stores/file_trash.py `_move_back` replace_file",
            "stores/file_trash.py `_move_back` set_aside",
            "stores/file_trash.py `_remove` disk.unlink",
            "stores/file_trash.py `_remove` os.rmdir",
            "stores/file_trash.py `_remove` path.is_dir",
            "stores/file_trash.py `_restore` is_empty",
            "stores/file_trash.py `_restore` os.listdir",
            "stores/file_trash.py `_restore` self._home.disk.unlink",
            "stores/file_trash.py `_restore` values.is_dir",
            "stores/file_trash.py `_write_as` replace_file",
        ],
    ),
    (
        "space given back where asked for",
        "`tests/stores/contract/test_vacuum.py`",
        [
            "stores/sqlite.py `vacuum` sql.execute",
            "stores/sqlite.py `vacuum` sql.execute (2)",
            "stores/sqlite_raw.py `_bytes` signature_at",
            "stores/sqlite_raw.py `vacuum` database.path.exists",
            "stores/sqlite_raw.py `unneeded` sql.execute",
            "stores/sqlite_raw.py `unneeded` sql.execute (2)",
            "stores/sqlite_raw.py `unneeded` sql.execute (3)",
            "stores/vacuum.py `_sessions` os.listdir",
        ],
    ),
    (
        "what retention asks, once a day",
        "`tests/assistant/test_deletion.py`",
        [
            "stores/index.py `is_as` signature_at",
            "stores/index.py `is_as` signature_at (2)",
            "stores/lock.py `is_locked` os.open",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/stores/test_search.py`",
        [
            "stores/index.py `values_of` blobs.is_dir",
            "stores/index.py `values_of` signature_at",
            "stores/search_index.py `_delete` self._sql.execute",
            "stores/search_index.py `_delete` self._sql.execute (2)",
            "stores/search_index.py `_delete` self._sql.execute (3)",
            "stores/search_index.py `_forget` self._sql.execute",
            "stores/search_index.py `_forget` self._sql.execute (2)",
            "stores/search_index.py `_purge` self._sql.execute",
            "stores/search_index.py `_throw_away` self._disk.unlink",
            "stores/search_index.py `_writing` self._sql.execute (2)",
        ],
    ),
    (
        "an output of more than 1 MB",
        "`tests/stores/test_output_files.py`",
        [
            "stores/output_files.py `_share_lock` make_directories",
            "stores/output_files.py `are_there` (self.path.parent / part.blob).is_file",
            "stores/output_files.py `write` replace_file",
        ],
    ),
    (
        "over a socket",
        "`tests/stores/contract/test_redis.py`",
        [
            "stores/redis.py `count` together.execute",
            "stores/redis.py `has` self.connect().exists",
        ],
    ),
    (
        "over a socket",
        "`tests/stores/contract/test_shelf_verify.py`",
        [
            "stores/redis_raw.py `read` together.execute",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/stores/contract/test_sqlite.py`",
        [
            "stores/sqlite_tables.py `all_or_nothing` sql.execute (3)",
            "stores/sqlite.py `count` sql.execute",
            "stores/sqlite.py `delete` sql.execute (2)",
            "stores/lock_file.py `holder` self._disk.open",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/stores/contract/test_shelf_verify.py`",
        [
            "stores/sqlite_raw.py `_copy_trash` sql.execute",
            "stores/sqlite_raw.py `_insert_deleted` sql.execute",
            "stores/sqlite_raw.py `_insert_deleted` sql.execute (2)",
            "stores/sqlite_raw.py `_insert_deleted` sql.execute (3)",
            "stores/sqlite_raw.py `_insert_deleted` sql.execute (4)",
            "stores/sqlite_raw.py `_rebuild` sql.execute",
            "stores/sqlite_raw.py `put` self._disk.unlink",
            "stores/sqlite_raw.py `put` sql.execute",
        ],
    ),
    (
        "a delete that is taken back",
        "`tests/stores/contract/test_trash.py`",
        [
            "stores/sqlite_trash.py `restore` sql.execute",
            "stores/sqlite_trash.py `restore` sql.execute (2)",
            "stores/sqlite_trash.py `restore` sql.execute (3)",
            "stores/sqlite_trash.py `restore` sql.execute (4)",
            "stores/sqlite_trash.py `read` sql.execute",
            "stores/sqlite_trash.py `remove` sql.execute",
            "stores/sqlite_trash.py `rows` sql.execute",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/stores/test_verify.py`",
        [
            "stores/verify.py `_fold` copy_aside",
            "stores/verify.py `_remake` claim_file",
            "stores/verify.py `_remake` copy_aside",
            "stores/verify.py `_remake` journal.path.read_bytes",
            "stores/verify.py `_salvage` copy_aside (2)",
            "stores/verify.py `_salvage` journal.path.read_bytes",
            "stores/verify.py `at_values` path.is_file",
        ],
    ),
    (
        "an editor with unsaved text",
        "`tests/e2e/test_edit_tools.py`",
        [
            "tools/command.py `_start` socket.socketpair",
            "tools/file_text.py `image_on_disk` os.fstat",
            "tools/file_text.py `unsaved_files` os.path.exists",
            "tools/walk.py `new_buffers` os.path.exists",
        ],
    ),
    (
        "a program of its own; what becomes of it is seen from outside",
        "`tests/tools/test_shell.py`",
        [
            "tools/command_keeper.py `__init__` socket.socketpair",
            "tools/command_keeper.py `_drop` os.read",
            "tools/command_keeper.py `become` os.dup2",
            "tools/command_keeper.py `become` os.dup2 (2)",
            "tools/command_keeper.py `become` os.dup2 (3)",
            "tools/command_keeper.py `become` os.execv",
            "tools/command_keeper.py `become` os.open",
            "tools/command_keeper.py `descendants` open",
            "tools/command_keeper.py `descendants` os.listdir",
            "tools/command_keeper.py `run` os.read",
            "tools/command_keeper.py `start` os.fork",
            "tools/command_keeper.py `start` socket.socketpair",
            "tools/command_keeper.py `tell` os.write",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/tools/test_git_settings.py`",
        [
            "tools/git_settings.py `_is_repository` os.path.exists",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/tools/test_globs.py`",
        [
            "tools/globs.py `_step` place.is_dir",
        ],
    ),
    (
        "a program of its own",
        "`tests/tools/test_search.py`",
        [
            "tools/matcher.py `__aenter__` asyncio.create_subprocess_exec",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/tools/test_killed_edits.py`",
        [
            "tools/replacing.py `_folder` os.rmdir",
            "tools/replacing.py `_is_left` os.fstat",
            "tools/replacing.py `_plain_folder` folder.mkdir",
            "tools/replacing.py `_plain_folder` one.exists",
            "tools/replacing.py `_take_over` os.fchown",
            "tools/replacing.py `_take_over` os.fchown (2)",
            "tools/replacing.py `_take_over` os.getxattr",
            "tools/replacing.py `_take_over` os.setxattr",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/tools/test_undo.py`",
        [
            "tools/undo.py `_place_of` folder.exists",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/tools/test_workspace.py`",
        [
            "tools/workspace.py `_listed_name` os.listdir",
            "tools/workspace.py `_undecodable` os.listdir",
            "tools/workspace.py `names_in` os.scandir",
            "tools/workspace.py `names_in` os.scandir (2)",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/agents/test_path_rights.py`",
        [
            "agents/other_names.py `_look` os.scandir",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/test_config.py`",
        [
            "agents/settings_file.py `_is_own` os.stat",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/assistant/test_rescue.py`",
        [
            "assistant/rescue.py `_claimed` claim_file",
            "assistant/rescue.py `_claimed` make_directories",
            "assistant/rescue.py `drop_stored` os.unlink",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/protocol/test_editor.py`",
        [
            "protocol/shown_texts.py `_remove_left` shutil.rmtree",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/stores/contract/test_trash.py`",
        [
            "stores/file_trash.py `has_expired` open",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/stores/test_leftovers.py`",
        [
            "stores/leftovers.py `_remove` os.unlink",
            "stores/leftovers.py `_remove_lock` os.open",
            "stores/leftovers.py `_remove_lock` os.unlink",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/stores/contract/test_busy.py`",
        [
            "stores/sqlite.py `_give_up` self._sql.execute",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/agents/test_command_folders.py`",
        [
            "tools/git_diff.py `_names` subprocess.run",
        ],
    ),
    (
        "only reached with what no use here has",
        "`tests/tools/test_globs.py`",
        [
            "tools/globs.py `_listed` os.scandir",
        ],
    ),
]
"""Why, the test, and the places it is true of."""


def reason_for(place: Place) -> tuple[str, str]:
    """Why, and the test; raises KeyError for a place that nobody has thought of."""
    for why, test, places in REASONS:
        if str(place) in places:
            return why, test
    raise KeyError(str(place))
