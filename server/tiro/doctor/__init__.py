"""`tiro doctor`: what is configured, what answers, and the one thing to do next.

It asks the parts themselves and starts no server, so that it works where a server would not.
"""
