"""Handles a test that failed in a real editor on a busy machine. For suites whose tests each start their own editor."""


def really_failed(failures, play):
    """The names of the failed tests. If there is only one, it is run again: a key or a frame can be late.

    `failures` has the reason of each; `play` runs a test by its name and returns why it failed, if it did. A test that
    passes the second time is named in a warning, with the first reason.
    """
    if len(failures) != 1:
        return list(failures)
    [(name, reason)] = failures.items()
    again = play(name)
    if again is not None:
        print(f"FAILED {name} once more: {again}", flush=True)
        return [name]
    print(f"WARNING: {name}: failed, and passed when it was played once more: {reason.splitlines()[0]}", flush=True)
    return []
