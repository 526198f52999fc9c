"""Exceptions and warnings. Messages say what went wrong, where, and what to do next."""


class MnarError(Exception):
    """Base class of all errors of this package."""


class InputError(MnarError, ValueError):
    """Arrays, labels or tables that cannot be used as given."""


class SettingsError(MnarError, ValueError):
    """Settings that are out of range or incompatible with each other."""


class NotIdentifiedError(MnarError, ArithmeticError):
    """The classifier cannot tell the classes apart, so the equations have no unique solution."""


class RunError(MnarError, RuntimeError):
    """`fit` or `predict` failed because of a file, a folder, or the training itself."""


class MnarWarning(UserWarning):
    """Something the reader of a result should know."""
