"""What a model is told that sums up messages: in the background (N3), or all of them (M7.1)."""

SUMMARY_WORDS = 200
SUMMARY_PROMPT = (
    "The messages below are about to leave the window of a conversation. Write a short summary"
    " that will serve as background later on. Say what happened, keep the details that matter"
    " (names, figures, facts, decisions), and say what is still open: tasks, questions, promises."
    " If an earlier summary is given, work it in, so that nothing it holds is lost. Use fewer than"
    f" {SUMMARY_WORDS} words. Give the summary and nothing else."
)
COMPACTION_PROMPT = (
    "The conversation below is to go on without its messages. Write what somebody needs who takes"
    " it over: what was done, what is being done, which files are concerned, what comes next, the"
    " wishes and limits the user named, and the decisions taken with their reasons. If an earlier"
    " summary is given, work it in. Be thorough and brief. Give the account and nothing else."
)
AT_MOST = "It may have {:,} words at most; a longer one is not taken."
KEEP_WORDS = "Keep these texts word for word, the user has pinned them:"
