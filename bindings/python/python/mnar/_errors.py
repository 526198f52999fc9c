"""What can go wrong. The messages say what, where, and what to do next."""


class MnarError(Exception):
    """The base of all errors of this package."""


class InputError(MnarError, ValueError):
    """Arrays, labels or tables that cannot be used as they are."""


class SettingsError(MnarError, ValueError):
    """Settings outside their range, or that do not go together."""


class NotIdentifiedError(MnarError, ArithmeticError):
    """The classifier cannot tell the classes apart, so the equations have no single solution."""


class RunError(MnarError, RuntimeError):
    """`fit` or `predict` on a file failed: a file, a folder, or training."""


class MnarWarning(UserWarning):
    """What a reader of a result should know."""
