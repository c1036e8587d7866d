"""The errors that end an experiment with a message instead of a traceback."""


class UsageError(Exception):
    """The caller asked for something that cannot be; exit code 2."""


class ExperimentError(Exception):
    """The experiment could not be carried out; exit code 1."""
