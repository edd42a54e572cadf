"""The commands, a noun each: what is done with the arguments, and what is said about it."""
