"""Configuration: where its files are, what may stand in them, and the settings they come to.

It must not know who uses the settings: nothing of the assistant, the protocol or the commands.
"""
