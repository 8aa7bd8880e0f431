"""The client of svccloud for Python: generated calls in `svccloud.api`, their types in `svccloud.models`, and what every
program needs besides them."""

from ._layer import EndlessList, OperationFailed, SvccloudError, connect, pages, unwrap, wait_for_operation
from ._version import VERSION

__all__ = [
    "VERSION",
    "EndlessList",
    "OperationFailed",
    "SvccloudError",
    "connect",
    "pages",
    "unwrap",
    "wait_for_operation",
]
