"""The conversation itself: messages, window, archive, tokens, resize; no I/O of any kind."""
