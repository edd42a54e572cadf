"""Sessions as text of open formats, a module a format: pure, no file is opened here.

`registry.py` is the list of them; whoever exports or imports asks there.
"""
