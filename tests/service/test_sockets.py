"""The service in a process of its own: what only shows on a real connection, how it stops, and TLS."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import httpx
import pytest

from pamo import Engine
from pamo.service.connections import LONGEST_HEADERS, MOST_AHEAD, Cycle
from pamo.service.endpoint import Headers
from pamo.store.maintenance import verify
from pamo.store.sqlite import SqliteStore
from tests.service.calling import SCORES
from tests.service.serving import Server, rest

FIXTURES = Path(__file__).parent.parent / "fixtures"
CERTIFICATE, KEY = FIXTURES / "test-only-certificate.pem", FIXTURES / "test-only-key.pem"
FLAGS = ("--objectives", "price: 0..500, lower is better, taste: 1..5", "--arms", "A,B,C")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return one with a short patience and little room."""
    with Server(*FLAGS, "--timeout-seconds", "0.5", "--idle-seconds", "1", "--max-body-bytes", "1000") as one:
        yield one


def post(body: bytes, *headers: str, length: int | None = None) -> bytes:
    named = [f"content-length: {len(body) if length is None else length}", "content-type: application/json", *headers]
    lines = "".join(f"{one}\r\n" for one in named)
    return f"POST /v1/decisions HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n".encode() + body


def status_of(text: bytes) -> int:
    return int(text.split(b" ", 2)[1])


def test_a_conversation(server: Server) -> None:
    with httpx.Client(base_url=server.url) as client:
        made = client.post("/v1/decisions", json={"user": "søren/1"})
        assert made.status_code == 201
        path = f"/v1/decisions/{made.json()['id']}/feedback"
        assert client.post(path, json={"rewards": SCORES}).json()["status"] == "recorded"
        found = client.get("/v1/users/s%C3%B8ren%2F1/preference").json()
        assert (found["user"], found["rounds"]) == ("søren/1", 1)
        assert "server" not in found


def test_headers_that_never_end(server: Server) -> None:
    """The connection is closed: whether nothing comes at all, or only a part."""
    assert server.talk(b"") == b""
    assert server.talk(b"GET /healthz HTT") == b""
    assert server.talk(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ") == b""


def test_a_second_request_whose_headers_never_end(server: Server) -> None:
    answer = server.talk(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nx-slow: ")
    assert answer.count(b"HTTP/1.1 200") == 1
    assert answer.endswith(b'{"status":"ok"}')


def test_a_body_that_never_ends(server: Server) -> None:
    answer = server.talk(post(b'{"user":', length=100))
    assert status_of(answer) == 408
    assert b"application/problem+json" in answer


def test_a_large_body(server: Server) -> None:
    assert status_of(server.talk(post(b"", length=1001))) == 413
    head = post(b"", "transfer-encoding: chunked").replace(b"content-length: 0\r\n", b"")
    assert status_of(server.talk(head + b"3e9\r\n" + b"x" * 1001 + b"\r\n")) == 413  # and it does not wait for the end
    with server.connect() as connection:
        # Who goes on sending is cut off, rather than listened to for ever.
        connection.sendall(head)
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 100_000_000:
                connection.sendall(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
                sent += 10_000
        assert sent < 100_000_000


def test_large_headers() -> None:
    """Who goes on and on is cut off long before the time is up; some kilobytes are fine."""
    head = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-large: "
    with Server(*FLAGS, "--timeout-seconds", "600") as server:
        assert status_of(server.talk(head + b"x" * 30_000 + b"\r\n\r\n")) == 200
        with server.connect() as connection:
            connection.sendall(head)
            time.sleep(0.1)
            connection.sendall(b"x" * (LONGEST_HEADERS + 1))
            assert status_of(rest(connection)) == 431


KEPT = {
    "a body that nobody wants": (b"content-length: 99\r\n\r\n", b"x"),
    "half a chunk": (b"transfer-encoding: chunked\r\n\r\nff\r\n", b"x"),
    "empty lines": (b"\r\n", b"\r\n"),
}


@pytest.mark.parametrize("kind", KEPT)
def test_after_an_answer_there_is_an_end_to_the_waiting(server: Server, kind: str) -> None:
    """However often something more is said, as long as it is no request."""
    head, more = KEPT[kind]
    with server.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + head)
        assert status_of(connection.recv(65536)) == 200
        connection.settimeout(0.2)
        until = time.monotonic() + 10.0
        while time.monotonic() < until:
            try:
                connection.sendall(more)
                if not connection.recv(65536):
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    pytest.fail("it was kept")


def test_trailers_have_an_end_and_change_nothing(server: Server) -> None:
    head = b"POST /v1/decisions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    body = b"transfer-encoding: chunked\r\n\r\nf\r\n" + b'{"user": "ann"}' + b"\r\n0\r\n"
    answer = server.talk(head + b"connection: close\r\n" + body + b"content-type: text/plain\r\n\r\n")
    assert status_of(answer) == 201
    with server.connect() as connection:
        connection.sendall(head + body + b"x-large: ")
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 100_000_000:
                connection.sendall(b"x" * 10_000)
                sent += 10_000
        assert sent < 100_000_000


def test_an_answer_that_is_not_taken(server: Server) -> None:
    """The connection is given up, though half of the answers could not be sent."""
    with server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 60)
        until = time.monotonic() + 10.0
        with contextlib.suppress(OSError):
            while time.monotonic() < until:
                connection.sendall(b"\r\n")
                time.sleep(0.2)
        assert time.monotonic() < until


@pytest.mark.parametrize("pause", [0.0, 0.05, 0.2])
def test_somebody_leaves_while_many_answers_are_due(server: Server, pause: float) -> None:
    """What is still being answered is not written to a connection that is gone: the log would be full of it."""
    with server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 60)
        time.sleep(pause)
    assert b"200" in server.talk(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert "Traceback" not in server.log


def test_requests_without_end_in_one_go(server: Server) -> None:
    answer = server.talk(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" * 2000)
    assert answer.count(b"HTTP/1.1 200") <= 2 * MOST_AHEAD


def test_there_is_room_for_so_many_from_one_address(tmp_path: Path) -> None:
    flags = (*FLAGS, "--max-connections-per-address", "3", "--max-connections", "5")
    with Server(*flags, "--timeout-seconds", "600") as server, contextlib.ExitStack() as stack:

        def come(address: str) -> bytes:
            connection = stack.enter_context(socket.create_connection(server.address, 60, (address, 0)))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            return connection.recv(12)

        assert [come("127.0.0.2") for _ in range(5)] == [b"HTTP/1.1 200"] * 3 + [b"HTTP/1.1 503"] * 2
        assert [come("127.0.0.3") for _ in range(3)] == [b"HTTP/1.1 200"] * 2 + [b"HTTP/1.1 503"]
        assert "full: 3 connections of at most 5" in server.log
        stack.pop_all().close()
        deadline = time.monotonic() + 30
        while come("127.0.0.2") != b"HTTP/1.1 200":  # until the server has seen them go
            assert time.monotonic() < deadline


def test_what_is_no_http(server: Server) -> None:
    for text in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"hello\r\n\r\n", b"GET /\x00 HTTP/1.1\r\n\r\n"):
        answer = server.talk(text)
        assert answer == b"" or status_of(answer) == 400
    lying = post(b"{}", "content-length: 5")
    assert status_of(server.talk(lying)) == 400


@pytest.mark.parametrize(("status", "keep_alive"), [(200, True), (200, False), (204, True), (404, True)])
def test_the_short_way_sends_what_the_long_way_does(status: int, keep_alive: bool) -> None:
    """In one write, which is one system call, and not with what the short way leaves out."""

    def answered(**kept: Any) -> tuple[list[Any], bool]:
        transport, done = mock.Mock(), mock.Mock()
        flow: Any = SimpleNamespace(write_paused=kept.get("paused", False))
        given = {"access_log": False, "method": "POST", "short": True, **kept}
        scope: Any = {
            "method": given["method"],
            "client": None,
            "path": "/",
            "query_string": b"",
            "http_version": "1.1",
        }
        cycle = Cycle(
            scope,
            *(transport, flow, mock.Mock(), mock.Mock(), given["access_log"], [(b"date", b"today")], asyncio.Event()),
            expect_100_continue=False,
            keep_alive=keep_alive,
            on_response=done,
        )
        pairs, body = [(b"content-type", b"text/plain"), (b"x", b"y")], b"" if status == 204 else b"well"
        sent = given["short"] and cycle.answer(status, Headers(pairs).text, body)
        if not given["short"]:
            length = [] if status == 204 else [(b"content-length", b"%d" % len(body))]
            asyncio.run(cycle.send({"type": "http.response.start", "status": status, "headers": [*pairs, *length]}))
            asyncio.run(cycle.send({"type": "http.response.body", "body": body}))
        assert (cycle.response_complete, done.called) == (bool(transport.mock_calls),) * 2
        return transport.mock_calls, sent

    (short, sent), (long, _) = answered(), answered(short=False)
    assert sent
    wrote, closed = ([call.args[0] for call in calls if call[0] == "write"] for calls in (short, long))
    assert wrote == [b"".join(closed)]
    assert [call for call in short if call[0] != "write"] == [call for call in long if call[0] != "write"]
    for kept in ({"access_log": True}, {"method": "HEAD"}, {"paused": True}):
        assert answered(**kept) == ([], False)


def test_head_has_headers_only(server: Server) -> None:
    for path in ("/v1/arms", "/healthz", "/openapi.json", "/docs", "/metrics"):
        with httpx.Client(base_url=server.url) as client:
            got, head = client.get(path), client.head(path)
            assert head.status_code == 200
            assert head.content == b""
            assert head.headers["content-type"] == got.headers["content-type"]
            if path != "/metrics":
                assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.content))
            assert head.headers["x-content-type-options"] == "nosniff"
            assert head.headers["cache-control"] == "no-store"
    assert server.talk(b"HEAD /none HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").endswith(b"\r\n\r\n")


def test_requests_one_after_the_other_on_one_connection(server: Server) -> None:
    body = b'{"user": "ann"}'
    answer = server.talk(post(body) * 20 + post(b"{", "connection: close"))
    assert answer.count(b"HTTP/1.1 201") == 20
    assert answer.count(b"HTTP/1.1 400") == 1


def test_an_erasure_has_no_content(server: Server) -> None:
    answer = server.talk(b"DELETE /v1/users/ann HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status_of(answer) == 204
    assert body == b""
    assert b"\r\ncontent-" not in head


def test_a_name_that_was_made_to_point_here(server: Server) -> None:
    answer = server.talk(b"GET /v1/arms HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n")
    assert status_of(answer) == 403


def test_the_access_log_does_not_tell_of_whom() -> None:
    paths = ("/v1/users/secret-ann/preference", "/v1/users/secret-ann/x", "/v1/users?query=secret", "/users/secret-ann")
    with Server(*FLAGS, "--access-log") as server:
        for path in (*paths, "/healthz"):
            httpx.get(f"{server.url}{path}")
        server.stop()
        log = server.rest_of_output()
    assert "secret" not in log
    for shown in ("/v1/users/{id}/preference", "/v1/users/{id}/{id}", "/v1/users", "/users/{id}", "/healthz"):
        assert f'"GET {shown} HTTP/1.1"' in log


def test_nothing_went_wrong_meanwhile(server: Server) -> None:
    assert "Traceback" not in server.log
    assert "ERROR" not in server.log


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_finishes_what_was_begun(tmp_path: Path, sign: int) -> None:
    """A request that is under way is answered and kept; the store is closed, and the next start goes on from there."""
    path = tmp_path / "journal.db"
    body = b'{"user": "ann"}'
    with Server(*FLAGS, store=str(path)) as server, server.connect() as begun, server.connect() as idle:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert idle.recv(12) == b"HTTP/1.1 200"
        begun.sendall(post(body)[:-5])
        assert httpx.get(f"{server.url}/readyz").status_code == 200  # so that both have arrived
        server.send(sign)
        assert rest(idle).endswith(b'{"status":"ok"}')  # closed, and so the signal has been seen
        with pytest.raises(OSError):  # noqa: PT011  # refused, on every system with words of its own
            server.connect()
        begun.sendall(body[-5:])
        answer = rest(begun)
        assert status_of(answer) == 201
        assert server.wait() == 0
        assert "Traceback" not in server.log
    assert path.with_name("journal.db.snapshot.npz").is_file()  # it was closed in good order
    with SqliteStore(path) as store, Engine(store=store) as engine:
        assert verify(store).ok
        (decision,) = [event["id"] for event in engine.export_user("ann")["history"]]
        assert decision.encode() in answer
        assert [arm.id for arm in engine.arms()] == ["A", "B", "C"]


def test_tls_by_flag() -> None:
    with Server(*FLAGS, "--tls-certificate", str(CERTIFICATE), "--tls-key", str(KEY)) as server:
        assert server.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(CERTIFICATE))
        with httpx.Client(base_url=f"https://localhost:{server.address[1]}", verify=trusting, timeout=60) as client:
            assert client.post("/v1/decisions", json={"user": "ann"}).status_code == 201
        began = time.monotonic()
        for _ in range(50):  # some begin to speak before the server has made up its mind who listens
            with server.connect() as raw, trusting.wrap_socket(raw, server_hostname="localhost") as secure:
                secure.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                assert b"200 OK" in secure.recv(65536)
        assert time.monotonic() - began < 9.0  # none waited for the end of a time-out
        with (
            httpx.Client(base_url=f"https://localhost:{server.address[1]}", timeout=60) as client,
            pytest.raises(httpx.ConnectError),
        ):
            client.get("/healthz")  # nobody has vouched for this certificate
        assert b"200 OK" not in server.talk(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert server.stop() == 0


def test_a_handshake_has_an_end_and_counts() -> None:
    flags = ("--timeout-seconds", "4", "--max-connections-per-address", "3")
    with Server(*FLAGS, *flags, "--tls-certificate", str(CERTIFICATE), "--tls-key", str(KEY)) as server:
        began = time.monotonic()
        held = [server.connect() for _ in range(3)]
        for connection, said in zip(held, (b"", b"\x16\x03", b"\x16\x03\x01\x02\x00\x01"), strict=True):
            connection.sendall(said)
        with server.connect() as late, contextlib.suppress(ConnectionResetError):
            assert rest(late) == b""
        assert time.monotonic() - began < 3.5
        for connection in held:
            with connection, contextlib.suppress(ConnectionResetError):
                assert rest(connection) == b""
        assert time.monotonic() - began < 30.0
        trusting = ssl.create_default_context(cafile=str(CERTIFICATE))
        while True:  # until the server has seen them go
            with contextlib.suppress(OSError), server.connect() as raw:
                trusting.wrap_socket(raw, server_hostname="localhost").close()
                break
            assert time.monotonic() - began < 60.0
        with httpx.Client(base_url=f"https://localhost:{server.address[1]}", verify=trusting, timeout=60) as client:
            assert [client.get("/healthz").status_code for _ in range(3)] == [200, 200, 200]
        # The request in the same packet as the end of the handshake is not lost.
        with server.connect() as raw, trusting.wrap_socket(raw, server_hostname="localhost") as secure:
            secure.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            assert b"200 OK" in secure.recv(65536)
        assert "full: " in server.log
        assert server.stop() == 0
        assert "Traceback" not in server.log


def test_a_wrong_certificate_is_one_sentence(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    with pytest.raises(RuntimeError) as caught:
        Server(*FLAGS, "--tls-certificate", str(wrong), "--tls-key", str(KEY))
    assert "Traceback" not in str(caught.value)
    assert "tls_certificate" in str(caught.value)
