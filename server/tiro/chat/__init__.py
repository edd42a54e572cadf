"""`tiro chat`: a conversation in a terminal, as a client of a server started for it.

What a person types comes in lines, what the server tells goes to the screen.
"""
