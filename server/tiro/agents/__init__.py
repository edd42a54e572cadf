"""Who answers, under which rules, and the loop of a turn.

It yields events to whoever is above. It knows no editor, no wire format and no configuration file.
"""
