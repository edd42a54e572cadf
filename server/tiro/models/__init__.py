"""Models: one request in, a stream of deltas out; who answers, and how it is spoken to.

This part must not know tools, stores, agents, settings files or editors. httpx lives here only, and
a provider's JSON is known to its adapter alone.
"""
