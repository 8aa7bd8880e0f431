"""What every program needs besides the calls: a client that sends again what may be sent again, refusals as errors,
waiting for operations, and complete lists. The calls themselves are generated: svccloud.api and svccloud.models."""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypeVar

import httpx

from ._version import VERSION
from .api.operations import get_operation
from .client import AuthenticatedClient
from .models import Operation

DEFAULT_URL = "http://127.0.0.1:8080"
REQUEST_SECONDS = 60.0
WAIT_SECONDS = 20
# Responses of a proxy, or different clocks: only a larger difference counts as early.
EARLY_SECONDS = 1.0
PAUSE_LEAST_SECONDS = 1.0
PAUSE_MOST_SECONDS = 60.0
REFUSALS_MOST = 5
# A service that never answered is probably not there; one that answered before comes back.
TRIES_BEFORE_ANSWER = 2
TRIES_AFTER_ANSWER = 8
# Clocks differ, and the service ends an operation itself at its deadline.
AFTER_DEADLINE = timedelta(minutes=1)
PAGES_MOST = 10_000
BODY_BYTES_MOST = 64 * 1024 * 1024

T_co = TypeVar("T_co", covariant=True)
Item = TypeVar("Item")
Value = TypeVar("Value")


class Answer(Protocol[T_co]):
    """What the `sync_detailed` of a generated call returns."""

    @property
    def parsed(self) -> T_co | None: ...


class Page(Protocol[T_co]):
    """A page of a list."""

    @property
    def items(self) -> Sequence[T_co]: ...
    @property
    def next_cursor(self) -> str | None: ...


class SvccloudError(Exception):
    """A refusal of the service. `problem` has the reason; give `request_id` to support."""

    def __init__(self, status: int, headers: Mapping[str, str], text: bytes) -> None:
        self.status = status
        self.problem = _object(text)
        self.request_id = headers.get("x-request-id")
        self.retry_after_seconds = _retry_after(headers)
        title = self.problem.get("title", httpx.codes.get_reason_phrase(status))
        where = headers.get("location")
        absent = "no detail" if where is None else f"it leads to {where}; set the URL of the service"
        absent = "the answer is not JSON" if status < 300 else absent
        super().__init__(f"{status} {title}: {self.problem.get('detail', absent)}")

    @property
    def code(self) -> str | None:
        """The reason for programs, such as `quota_exceeded`; None when there is none."""
        reason = self.problem.get("reason")
        return reason if isinstance(reason, str) else None

    @property
    def fields(self) -> dict[str, str]:
        """What is wrong with which field."""
        errors = self.problem.get("errors")
        known = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
        return {str(each.get("field")): str(each.get("detail")) for each in known}


class OperationFailed(Exception):
    """Raised when an operation did not succeed."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        how = "was cancelled" if operation.status == "cancelled" else f"failed: {operation.error}"
        super().__init__(f"operation {operation.id} ({operation.kind}) {how}")


class EndlessList(Exception):
    """Raised when the pages of a list do not end."""


def connect(
    url: str | None = None, token: str | None = None, sleep: Callable[[float], None] = time.sleep
) -> AuthenticatedClient:
    """A client of the service, by the variables SVCCLOUD_URL and SVCCLOUD_TOKEN unless both are passed. Raises ValueError
    without a token."""
    address = (os.environ.get("SVCCLOUD_URL", DEFAULT_URL) if url is None else url).strip().rstrip("/")
    secret = os.environ.get("SVCCLOUD_TOKEN", "") if token is None else token
    if not re.match("https?://", address, re.IGNORECASE):
        raise ValueError(f"{address!r} is not the URL of a service: it must start with http:// or https://")
    if secret == "":
        raise ValueError("there is no token: set SVCCLOUD_TOKEN")
    return AuthenticatedClient(
        base_url=address,
        token=secret,
        headers={"user-agent": f"svccloud-python/{VERSION}"},
        timeout=httpx.Timeout(REQUEST_SECONDS),
        # a client inside: it knows the proxies of the environment
        httpx_args={"transport": Repeating(httpx.Client(), sleep)},
    )


class Repeating(httpx.BaseTransport):
    """Sends again what was lost on the way or refused for now, and raises SvccloudError for every other refusal. Each
    POST has an Idempotency-Key, so the service carries it out once."""

    def __init__(self, inner: httpx.Client, sleep: Callable[[float], None] = time.sleep) -> None:
        self._inner = inner
        self._sleep = sleep
        self._has_answered = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            request.headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
        lost = refused = 0
        while True:
            tries = TRIES_AFTER_ANSWER if self._has_answered else TRIES_BEFORE_ANSWER
            try:
                response = self._once(request)
            except httpx.TransportError as error:
                lost += 1
                if lost >= tries or not _may_repeat(request, error):
                    raise
                self._sleep(lost * PAUSE_LEAST_SECONDS)
                continue
            self._has_answered = True
            if response.is_success and _is_json(response):
                return response
            refusal = SvccloudError(response.status_code, response.headers, response.content)
            pause = _pause(refusal, response.headers)
            if pause is not None and refused < REFUSALS_MOST:
                refused += 1
                self._sleep(pause)
            elif _is_lost(refusal) and _may_repeat(request, None) and lost + 1 < tries:
                lost += 1
                self._sleep(lost * PAUSE_LEAST_SECONDS)
            else:
                raise refusal

    def _once(self, request: httpx.Request) -> httpx.Response:
        """The answer with its body, which may be lost as well."""
        response = self._inner.send(request, stream=True)
        body = bytearray()
        try:
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > BODY_BYTES_MOST:
                    raise httpx.DecodingError(f"the answer is larger than {BODY_BYTES_MOST} bytes")
        finally:
            response.close()
        return httpx.Response(response.status_code, headers=response.headers, content=bytes(body), request=request)

    def close(self) -> None:
        self._inner.close()


def _may_repeat(request: httpx.Request, error: httpx.TransportError | None) -> bool:
    """Whether the request does the same when the service has already carried it out; one that was never sent may too."""
    is_unsent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
    return is_unsent or request.method in ("GET", "PUT", "DELETE") or "Idempotency-Key" in request.headers


def _is_json(response: httpx.Response) -> bool:
    return response.content == b"" or "json" in response.headers.get("content-type", "")


def _is_lost(refusal: SvccloudError) -> bool:
    """Whether it may be the answer of something between, or of a service that has just failed."""
    if refusal.status == 503:
        return refusal.retry_after_seconds is None and refusal.code is None
    return refusal.status in (500, 502, 504)


def _pause(refusal: SvccloudError, headers: Mapping[str, str]) -> float | None:
    """Seconds until the request may be sent again; None for a refusal that stays."""
    is_asked = refusal.status == 503 and refusal.retry_after_seconds is not None and refusal.code != "no_capacity"
    # The same request, sent before, is still being carried out.
    is_open = refusal.code == "operation_in_progress" and "active_operation_id" not in refusal.problem
    if not (refusal.status == 429 or is_asked or (refusal.status == 409 and is_open)):
        return None
    return _bounded(refusal.retry_after_seconds or _spread(headers))


def _bounded(seconds: float) -> float:
    return min(PAUSE_MOST_SECONDS, max(PAUSE_LEAST_SECONDS, seconds))


def _spread(headers: Mapping[str, str]) -> float:
    """Spreads the remaining requests until the budget is full again (RateLimit)."""
    found = re.search(r";r=(\d+);t=(\d+)", headers.get("ratelimit", ""))
    return 0.0 if found is None else int(found[2]) / max(1, int(found[1]))


def _retry_after(headers: Mapping[str, str]) -> float | None:
    text = headers.get("retry-after", "")
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d+)?", text, re.ASCII) else None


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def unwrap(answer: Answer[Value]) -> Value:
    """The data of an answer: `unwrap(get_server.sync_detailed(id, client=client)).server`. Raises ValueError for one that
    has none, such as of a deletion that is done at once."""
    if answer.parsed is None:
        raise ValueError("the answer has no data")
    return answer.parsed


def wait_for_operation(
    client: AuthenticatedClient,
    id: str,
    on_change: Callable[[Operation], None] | None = None,
    timeout_seconds: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Operation:
    """Returns the operation when it has succeeded. Raises OperationFailed when it failed or was cancelled, and
    TimeoutError at its `deadline_at`, or earlier when `timeout_seconds` are over. Only the wait ends then: the operation
    goes on."""
    latest: Operation | None = None
    begun = time.monotonic()
    while True:
        left = WAIT_SECONDS if timeout_seconds is None else begun + timeout_seconds - time.monotonic()
        sent = time.monotonic()
        # The service answers when something changes, so every request returns news.
        wait = max(0, min(WAIT_SECONDS, int(left)))
        answer = get_operation.sync_detailed(id, client=client, wait=wait)
        operation = unwrap(answer).operation
        if operation != latest and on_change is not None:
            on_change(operation)
        if operation.status == "succeeded":
            return operation
        if operation.status in ("failed", "cancelled"):
            raise OperationFailed(operation)
        unended = f"operation {operation.id} ({operation.kind}) has not ended; it is at step {operation.step!r}"
        if _now(answer.headers) > operation.deadline_at + AFTER_DEADLINE:
            raise TimeoutError(f"{unended}, after its deadline")
        if timeout_seconds is not None and time.monotonic() - begun >= timeout_seconds:
            raise TimeoutError(unended)
        if operation == latest and time.monotonic() - sent < wait - EARLY_SECONDS or wait == 0:
            sleep(PAUSE_LEAST_SECONDS)
        latest = operation


def _now(headers: Mapping[str, str]) -> datetime:
    """By the clock of the service, as its deadlines are."""
    try:
        return parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError):
        return datetime.now(UTC)


def pages(read: Callable[[dict[str, Any]], Answer[Page[Item]]], pages_most: int = PAGES_MOST) -> Iterator[Item]:
    """Every item of a list: `pages(lambda query: list_servers.sync_detailed(client=client, **query))`. The first page is
    requested without a cursor. Raises EndlessList when a cursor comes again, and after `pages_most` pages."""
    query: dict[str, Any] = {}
    seen: set[str] = set()
    for _ in range(pages_most):
        page = unwrap(read(query))
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in seen:
            raise EndlessList("a page names an earlier one as the next")
        seen.add(cursor)
        query = {"cursor": cursor}
    raise EndlessList(f"the list has more than {pages_most} pages")
