"""What went wrong with a connection, in words: from aiohttp's and the system's exceptions to a ``ConnectionFault``."""

from __future__ import annotations

import errno
import os
import ssl

import aiohttp

from shoal.kube.errors import ConnectionFault

FAULTS = (aiohttp.ClientError, OSError)
"""Everything that can happen to a connection; timeouts and TLS are OSErrors."""

_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)


def connection_fault(error: Exception, *, server: str, request: str, timeout: float | None = None) -> ConnectionFault:
    """The fault that an exception of a connection means, naming the server, the cause and the request."""
    cause = describe(error, timeout=timeout)
    return ConnectionFault(
        f"{server} {cause} ({request})",
        sent=not isinstance(error, _NEVER_SENT),
        lasting=isinstance(error, aiohttp.ClientConnectorCertificateError),
    )


def harmless(error: Exception) -> Exception | None:
    """The exception, where it may be shown: aiohttp's response errors carry the request's headers, tokens and all."""
    return None if isinstance(error, aiohttp.ClientResponseError) else error


def describe(error: Exception, *, timeout: float | None = None) -> str:
    """The cause as the end of a sentence that begins with the server."""
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
            return f"shows a certificate that is not trusted: {getattr(cause, 'verify_message', '') or cause}"
        case aiohttp.ClientConnectorDNSError(os_error=cause):
            return f"has a name that does not resolve: {_reason(cause)}"
        case aiohttp.ClientProxyConnectionError(os_error=cause):
            return f"cannot be reached through the proxy: {_reason(cause)}"
        case aiohttp.ClientConnectorSSLError(os_error=cause):
            return f"does not agree with us on TLS: {_reason(cause)}"
        case aiohttp.ClientConnectorError(os_error=cause):
            return f"cannot be reached: {_reason(cause)}"
        case aiohttp.ConnectionTimeoutError():
            return "cannot be reached: no connection in time"
        case aiohttp.ClientHttpProxyError(status=status, message=message):
            return f"cannot be reached: the proxy answered {status} {message}"
        case TimeoutError():
            return f"gave no answer within {timeout:g} s" if timeout is not None else "gave no answer in time"
        case aiohttp.ServerDisconnectedError():
            return "closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            return "broke off its answer"
        case aiohttp.ClientResponseError(message=message):
            return f"did not answer in HTTP: {message}"
        case OSError():
            return f"broke the connection: {_reason(error)}"
        case _:
            return f"cannot be talked to: {_reason(error)}"


def _reason(error: BaseException) -> str:
    match error:
        case ssl.SSLError(reason=str(reason)) if reason:
            return reason.replace("_", " ").lower()
        case ssl.SSLError():
            pass
        case OSError(errno=int(number)) if number in errno.errorcode:
            # Event loops put words of their own in strerror; the number always means the same.
            return os.strerror(number)
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)
