"""Sessions as text of open formats, a module a format: pure, no file is opened here.

`registry.py` is the list of them; whoever exports or imports asks there. The two names below are
for programs that use Tiro as a library.
"""

from tiro.stores.formats.library import export_session, import_session

__all__ = ["export_session", "import_session"]
