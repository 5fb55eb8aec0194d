"""A SOCKS5 proxy on loopback (RFC 1928 and 1929) that leads to one port, whatever is asked for."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Final

VERSION: Final = 5
NO_LOGIN, LOGIN, NONE_FITS = 0, 2, 0xFF
NAMED: Final = 3  # the kind of an address that is a name
CONNECTED: Final = bytes([VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0])


@dataclass
class Socks:
    port: int  # of the proxy
    login: tuple[str, str] | None
    asked: list[str] = field(default_factory=list)  # names of hosts

    def address(self, kind: str) -> str:
        login = ":".join(self.login) + "@" if self.login else ""
        return f"{kind}://{login}127.0.0.1:{self.port}"


@contextlib.contextmanager
def socks(target: int, login: tuple[str, str] | None = None) -> Iterator[Socks]:
    """Lets in only who logs in, if a login is given."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError, EOFError):
                self.meet()

        def meet(self) -> None:
            client: socket.socket = self.request
            _, count = read(client, 2)
            wanted = LOGIN if login else NO_LOGIN
            fits = wanted in read(client, count)
            client.sendall(bytes([VERSION, wanted if fits else NONE_FITS]))
            if not fits:
                return
            if login:
                given = tuple(read(client, read(client, size)[-1]).decode() for size in (2, 1))
                client.sendall(bytes([1, given != login]))
                if given != login:
                    return
            *_, kind = read(client, 4)
            assert kind == NAMED
            proxy.asked.append(read(client, read(client, 1)[0]).decode())
            read(client, 2)
            with socket.create_connection(("127.0.0.1", target)) as server:
                for end in (client, server):  # what comes in pieces goes on in pieces, at once
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.sendall(CONNECTED)
                back = threading.Thread(target=pour, args=(server, client))
                back.start()
                pour(client, server)
                back.join()

    class Server(ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy = Socks(server.server_address[1], login)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()


def read(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def pour(source: socket.socket, into: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            into.sendall(data)
        into.shutdown(socket.SHUT_WR)
