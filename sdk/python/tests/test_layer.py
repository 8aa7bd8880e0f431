"""The layer against a service on this machine that refuses, loses connections and never ends."""

from __future__ import annotations

import json
import threading
import unittest
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from unittest import mock

import httpx

import svccloud
from svccloud import EndlessList, OperationFailed, SvccloudError, pages, unwrap, wait_for_operation
from svccloud.api.servers import delete_server, list_servers, update_server
from svccloud.api.ssh_keys import create_ssh_key
from svccloud.client import AuthenticatedClient
from svccloud.models import CreateSshKey, Operation, ServerPage, UpdateServer
from svccloud.types import Response

ID = "00000000-0000-4000-8000-000000000001"
KEY = {"id": ID, "name": "laptop", "public_key": "ssh-ed25519 A", "fingerprint": "SHA256:A"}
LATER = "2999-01-01T00:00:00Z"
Reply = tuple[int, dict[str, str], object]


def operation(status: str, deadline: str = LATER, error: str = "") -> Reply:
    names = "server_id storage_id backup_id template_id router_id floating_ip_id node_id load_balancer_id database_id "
    names += "edge_id snapshot_id kubernetes_cluster_id node_pool_id kubernetes_host_id started_at finished_at"
    fields: dict[str, object] = {name: None for name in names.split()}
    fields |= {"id": ID, "kind": "server.create", "status": status, "step": "boot", "step_index": 1, "step_count": 2}
    fields |= {"error": error, "created_at": "2001-01-01T00:00:00Z", "deadline_at": deadline, "actor": "user:1"}
    return (
        200,
        {},
        {
            "operation": fields
            | {"resource": {"type": "server", "id": ID, "name": "one"}, "actor_name": None, "events": []}
        },
    )


class Service(BaseHTTPRequestHandler):
    """Answers with the replies one after the other, and then the last one for ever. A status of 0 loses the
    connection, -1 loses it within the body."""

    replies: ClassVar[Callable[[int], Reply]]
    seen: ClassVar[list[tuple[str, str, dict[str, str], bytes]]]
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        status, headers, value = type(self).replies(len(self.seen) - 1)
        if status <= 0:
            if status < 0:
                self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")
            self.close_connection = True
            return
        text = b"" if value is None else value if isinstance(value, bytes) else json.dumps(value).encode()
        kind = "application/json" if status < 300 else "application/problem+json"
        self.send_response(status)
        for name, header in {"content-type": kind, "x-request-id": "r1", **headers}.items():
            self.send_header(name, header)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PATCH = do_DELETE = answer

    def log_message(self, format: str, *args: object) -> None:
        pass


def refusal(status: int, headers: dict[str, str] | None = None, **members: Any) -> Reply:
    return status, headers or {}, {"status": status, "title": "Refused", "detail": "Because.", **members}


LIST: Reply = (200, {}, {"items": [], "next_cursor": None})
CREATED: Reply = (201, {}, {"ssh_key": {**KEY, "created_at": "2001-01-01T00:00:00Z"}})


class LayerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        Service.seen = []
        self.slept: list[float] = []
        self.client = svccloud.connect(f"http://127.0.0.1:{self.server.server_port}/", "secret", self.slept.append)

    def tearDown(self) -> None:
        self.client.get_httpx_client().close()
        self.server.shutdown()
        self.server.server_close()

    def reply(self, *replies: Reply) -> None:
        Service.replies = lambda index: replies[min(index, len(replies) - 1)]

    def list(self) -> ServerPage:
        return unwrap(list_servers.sync_detailed(client=self.client))

    def create(self) -> str:
        body = CreateSshKey(name="laptop", public_key="ssh-ed25519 A")
        return unwrap(create_ssh_key.sync_detailed(client=self.client, body=body)).ssh_key.name

    def wait(self, **options: Any) -> Operation:
        return wait_for_operation(self.client, ID, sleep=self.slept.append, **options)

    def test_a_request_has_the_token_and_the_name_of_the_client(self) -> None:
        self.reply(LIST)
        self.list()
        method, path, headers, _ = Service.seen[0]
        self.assertEqual((method, path, headers["authorization"]), ("GET", "/v1/servers", "Bearer secret"))
        self.assertEqual(headers["user-agent"], f"svccloud-python/{svccloud.VERSION}")

    def test_too_many_requests_wait_as_long_as_the_service_says(self) -> None:
        self.reply(refusal(429, {"retry-after": "7"}), refusal(503, {"retry-after": "3"}), LIST)
        self.assertEqual(self.list().items, [])
        self.assertEqual(self.slept, [7, 3])

    def test_a_pause_is_never_longer_than_a_minute_nor_shorter_than_a_second(self) -> None:
        dates = [{"retry-after": text} for text in ("86400", "0", "Wed, 21 Oct 2015 07:28:00 GMT", "-5", "1e9")]
        self.reply(*(refusal(429, headers) for headers in dates), LIST)
        self.list()
        self.assertEqual(self.slept, [60, 1, 1, 1, 1])

    def test_without_a_time_the_rest_of_the_budget_is_spread(self) -> None:
        self.reply(refusal(429, {"ratelimit": '"api";r=2;t=30'}), LIST)
        self.list()
        self.assertEqual(self.slept, [15])

    def test_the_sixth_refusal_in_a_row_is_an_error(self) -> None:
        self.reply(refusal(429, {"retry-after": "1"}, reason="rate_limited"))
        with self.assertRaises(SvccloudError) as raised:
            self.list()
        self.assertEqual((raised.exception.code, len(Service.seen)), ("rate_limited", 6))

    def test_no_capacity_stays_so(self) -> None:
        self.reply(refusal(503, {"retry-after": "1"}, reason="no_capacity"))
        with self.assertRaises(SvccloudError):
            self.list()
        self.assertEqual(len(Service.seen), 1)

    def test_a_refusal_has_the_problem_its_code_the_request_and_the_fields(self) -> None:
        errors = [{"field": "hostname", "detail": "is too long"}]
        self.reply(refusal(400, reason="invalid", errors=errors))
        with self.assertRaises(SvccloudError) as raised:
            self.list()
        error = raised.exception
        self.assertEqual(str(error), "400 Refused: Because.")
        self.assertEqual((error.status, error.code, error.request_id), (400, "invalid", "r1"))
        self.assertEqual(error.fields, {"hostname": "is too long"})

    def test_a_refusal_that_is_no_problem_document_is_one_too(self) -> None:
        hostile: list[object] = [b"<html>", b"[" * 100_000, b"\xff", [], {"errors": [1, {}], "reason": 5}]
        for value in hostile:
            Service.seen.clear()
            self.reply((404, {}, value))
            with self.assertRaises(SvccloudError) as raised:
                self.list()
            self.assertIsNone(raised.exception.code)
            self.assertEqual(raised.exception.fields.get("hostname"), None)

    def test_a_redirect_is_not_followed_and_a_page_is_no_answer(self) -> None:
        self.reply((302, {"location": "http://elsewhere.example/"}, None))
        with self.assertRaisesRegex(SvccloudError, "elsewhere.example"):
            self.list()
        self.reply((200, {"content-type": "text/html"}, b"<html>"))
        with self.assertRaisesRegex(SvccloudError, "not JSON"):
            self.list()

    def test_a_creation_whose_connection_is_lost_is_sent_again_with_the_same_key(self) -> None:
        self.reply(LIST)
        self.list()
        for lost in (0, -1):
            Service.seen.clear()
            self.reply((lost, {}, None), CREATED)
            self.assertEqual(self.create(), "laptop")
            first, second = Service.seen
            self.assertEqual(first[2]["idempotency-key"], second[2]["idempotency-key"])
            self.assertEqual(first[3], second[3])

    def test_two_creations_have_two_keys_and_a_key_of_the_program_stays(self) -> None:
        self.reply(CREATED)
        self.create()
        self.create()
        body = CreateSshKey(name="laptop", public_key="ssh-ed25519 A")
        create_ssh_key.sync_detailed(client=self.client, body=body, idempotency_key=ID)
        one, two, third = (headers["idempotency-key"] for _, _, headers, _ in Service.seen)
        self.assertNotEqual(one, two)
        self.assertEqual(third, ID)

    def test_a_creation_that_is_still_carried_out_is_asked_for_again(self) -> None:
        self.reply(refusal(409, reason="operation_in_progress"), CREATED)
        self.assertEqual(self.create(), "laptop")
        self.reply(refusal(409, reason="operation_in_progress", active_operation_id=ID))
        with self.assertRaises(SvccloudError):
            self.create()

    def test_a_change_whose_answer_is_lost_is_not_sent_again(self) -> None:
        self.reply(LIST)
        self.list()
        Service.seen.clear()
        for lost in ((0, {}, None), refusal(502)):
            self.reply(lost)
            with self.assertRaises((httpx.TransportError, SvccloudError)):
                update_server.sync_detailed(ID, client=self.client, body=UpdateServer())
        self.assertEqual(len(Service.seen), 2)

    def test_a_service_that_answered_is_tried_eight_times_and_another_twice(self) -> None:
        self.reply((0, {}, None))
        with self.assertRaises(httpx.TransportError):
            self.list()
        self.assertEqual(len(Service.seen), 2)
        self.reply(LIST)
        self.list()
        Service.seen.clear()
        self.reply((0, {}, None), refusal(502), (0, {}, None))
        with self.assertRaises(httpx.TransportError):
            delete_server.sync_detailed(ID, client=self.client)
        self.assertEqual(len(Service.seen), 8)

    def test_pages_are_read_to_the_end(self) -> None:
        self.reply((200, {}, {"items": [], "next_cursor": "two"}), (200, {}, {"items": [], "next_cursor": None}))
        self.assertEqual(list(pages(self.read)), [])
        self.assertEqual([path for _, path, _, _ in Service.seen], ["/v1/servers", "/v1/servers?cursor=two"])

    def read(self, query: dict[str, Any]) -> Response[ServerPage]:
        return list_servers.sync_detailed(client=self.client, **query)

    def test_pages_that_lead_back_and_pages_without_end_are_an_error(self) -> None:
        self.reply(*((200, {}, {"items": [], "next_cursor": cursor}) for cursor in ("a", "b", "a")))
        with self.assertRaisesRegex(EndlessList, "earlier"):
            list(pages(self.read))
        self.assertEqual(len(Service.seen), 3)
        Service.replies = lambda index: (200, {}, {"items": [], "next_cursor": f"c{index}"})
        with self.assertRaisesRegex(EndlessList, "more than 20 pages"):
            list(pages(self.read, pages_most=20))

    def test_an_operation_is_waited_for_to_its_end(self) -> None:
        self.reply(
            operation("pending"), refusal(503, {"retry-after": "2"}), operation("running"), operation("succeeded")
        )
        observed: list[str] = []
        ended = self.wait(on_change=lambda each: observed.append(each.status))
        self.assertEqual((ended.status, observed), ("succeeded", ["pending", "running", "succeeded"]))
        self.assertEqual(Service.seen[0][1], f"/v1/operations/{ID}?wait=20")

    def test_early_answers_without_news_do_not_become_a_flood(self) -> None:
        self.reply(operation("running"), operation("running"), operation("running"), operation("succeeded"))
        self.wait()
        self.assertEqual(self.slept, [1, 1])

    def test_a_failed_operation_is_an_error(self) -> None:
        self.reply(operation("failed", error="No host has room."))
        with self.assertRaisesRegex(OperationFailed, "failed: No host has room"):
            self.wait()
        self.reply(operation("cancelled"))
        with self.assertRaisesRegex(OperationFailed, "was cancelled"):
            self.wait()

    def test_a_wait_ends_at_the_deadline_by_the_clock_of_the_service_or_when_the_program_says(self) -> None:
        self.reply(operation("running", "2001-01-01T00:00:00Z"))
        with self.assertRaisesRegex(TimeoutError, "after its deadline"):
            self.wait()
        self.assertEqual(len(Service.seen), 1)
        self.reply(operation("running"))
        with self.assertRaisesRegex(TimeoutError, "at step 'boot'"):
            self.wait(timeout_seconds=0)


class ConnectTest(unittest.TestCase):
    def connect(self, environment: dict[str, str]) -> AuthenticatedClient:
        with mock.patch.dict("os.environ", environment, clear=True):
            return svccloud.connect()

    def test_the_variables_are_those_of_the_command(self) -> None:
        client = self.connect({"SVCCLOUD_TOKEN": "t", "SVCCLOUD_URL": " https://cloud.example/ "})
        self.assertEqual(str(client.get_httpx_client().base_url), "https://cloud.example")
        client = self.connect({"SVCCLOUD_TOKEN": "t"})
        self.assertEqual(str(client.get_httpx_client().base_url), "http://127.0.0.1:8080")

    def test_without_a_token_or_a_url_it_says_what_to_set(self) -> None:
        for environment in ({}, {"SVCCLOUD_TOKEN": ""}):
            with self.assertRaisesRegex(ValueError, "SVCCLOUD_TOKEN"):
                self.connect(environment)
        with self.assertRaisesRegex(ValueError, "http://"):
            self.connect({"SVCCLOUD_TOKEN": "t", "SVCCLOUD_URL": "cloud.example"})


if __name__ == "__main__":
    unittest.main()
