"""What goes over both wires as a file, and that file as a provider.

Knows bytes, times and secrets; no method, no message and no provider's JSON.
"""
