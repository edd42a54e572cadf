"""JSON-RPC over stdio: methods, wire types, error codes, our own reader and writer.

The only part that knows pygls and camelCase. Everything it does is asked of the assistant.
"""
