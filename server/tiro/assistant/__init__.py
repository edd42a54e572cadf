"""The front door: what a user may ask of Tiro, as if no editor protocol existed.

It knows sessions, agents, models and tools; it must not know JSON-RPC, camelCase or who calls it.
"""
