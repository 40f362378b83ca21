"""Exceptions. Each says in one line what is wrong, where, and what to do about it."""


class Error(Exception):
    """All that Varve raises."""


class InputError(Error, ValueError):
    """Invalid arguments or input: `varve` would end with exit code 2."""


class RunError(Error, RuntimeError):
    """The work failed: `varve` would end with exit code 1."""
