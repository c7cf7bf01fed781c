# SPDX-License-Identifier: Apache-2.0
"""Errors: one class for each status of the library."""


class Error(Exception):
    """A call of libgraphrt failed.

    Attributes:
        status: the status' name, such as "INVALID_ARGUMENT".
        message: what was wrong: node, operator and tensor, what was expected and what was found.
    """

    status = "INTERNAL"

    def __init__(self, message):
        super().__init__(message)
        self.message = message


class InvalidArgument(Error, ValueError):
    """A parameter is wrong: a name, a dtype, a shape or a size that does not fit."""

    status = "INVALID_ARGUMENT"


class InvalidModel(Error, ValueError):
    """The ONNX model breaks a rule of the ONNX specification."""

    status = "INVALID_MODEL"


class InvalidPlan(Error, ValueError):
    """The plan file is truncated, corrupt or of a newer format."""

    status = "INVALID_PLAN"


class Unsupported(Error, NotImplementedError):
    """Valid, but this build or backend has no implementation for it."""

    status = "UNSUPPORTED"


class FileError(Error, OSError):
    """A file could not be read or written."""

    status = "IO"

    def __str__(self):
        return self.message


class OutOfMemory(Error, MemoryError):
    """An allocation on the host or the device failed."""

    status = "OUT_OF_MEMORY"


class DeviceError(Error):
    """A device is missing, lost or reported an error."""

    status = "DEVICE"


class Cancelled(Error):
    """The caller asked to stop."""

    status = "CANCELLED"


class DeadlineExceeded(Error, TimeoutError):
    """The time that the caller gave was over before the work was done."""

    status = "DEADLINE_EXCEEDED"

    def __str__(self):
        return self.message


class Busy(Error, BlockingIOError):
    """Not now: a queue is full, or what is waited for is not done yet; the same call may succeed later."""

    status = "BUSY"

    def __str__(self):
        return self.message


class InternalError(Error):
    """A bug in libgraphrt: please report it with the message."""


class Untrusted(Error):
    """The plan is not signed by a key that the caller trusts, or was changed since."""

    status = "UNTRUSTED"


_CLASSES = {kind.status: kind for kind in [InvalidArgument, InvalidModel, InvalidPlan, Unsupported, FileError, OutOfMemory, DeviceError,
                                           Cancelled, InternalError, Untrusted, DeadlineExceeded, Busy]}


def of_status(status, message):
    """The exception of a status' name. One that this package does not know yet is an Error with that status."""
    error = _CLASSES.get(status, Error)(message)
    error.status = status
    return error
