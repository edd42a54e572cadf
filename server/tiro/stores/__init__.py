"""Where sessions live: files with their journal, lock and index, behind one contract.

It knows messages and sessions, but no model, no tool, no agent and no wire format.
"""
