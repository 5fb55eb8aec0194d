"""What a screen reader is told: the tree of a program on the accessibility bus (AT-SPI)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from jeepney import (
    DBusAddress,
    HeaderFields,
    MatchRule,
    Message,
    MessageType,
    new_method_call,
)
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import DBusConnection, open_dbus_connection

from tests.ui.desktop.session import PATIENCE_S

_ACCESSIBLE: Final = "org.a11y.atspi.Accessible"
_STATES: Final = {
    1: "active", 4: "checked", 7: "editable", 8: "enabled", 10: "expanded", 11: "focusable",
    12: "focused", 18: "multi-line", 20: "pressed", 23: "selected", 24: "sensitive",
    25: "showing", 30: "visible", 41: "checkable",
}  # fmt: skip
"""Of AtspiStateType, by number."""

_ASSERTIVE: Final = 2
"""Of AtspiLive."""


class Bus:
    """The accessibility bus of a session: blocking calls, closed with `close`."""

    def __init__(self, session: str) -> None:
        with open_dbus_connection(session) as connection:
            launcher = DBusAddress("/org/a11y/bus", "org.a11y.Bus", "org.a11y.Bus")
            (address,) = _call(connection, launcher, "GetAddress")
        self._connection = open_dbus_connection(address)

    def close(self) -> None:
        self._connection.close()

    def call(
        self, node: Node, interface: str, method: str, signature: str = "", *arguments: Any
    ) -> tuple[Any, ...]:
        address = DBusAddress(node.path, node.owner, interface)
        return _call(self._connection, address, method, signature, *arguments)

    def property(self, node: Node, interface: str, name: str) -> Any:
        properties = "org.freedesktop.DBus.Properties"
        return self.call(node, properties, "Get", "ss", interface, name)[0][1]

    def watch_focus(self) -> None:
        """From now on programs tell what gets the focus, as they do for a screen reader."""
        self._focus = self._watch("object:state-changed:focused", "StateChanged")

    def watch_announcements(self) -> None:
        """The same of what is to be said."""
        self._said = self._watch("object:announcement", "Announcement")

    def _watch(self, event: str, member: str) -> deque[Message]:
        registry = DBusAddress(
            "/org/a11y/atspi/registry", "org.a11y.atspi.Registry", "org.a11y.atspi.Registry"
        )
        _call(self._connection, registry, "RegisterEvent", "sass", event, [], "")
        rule = MatchRule(type="signal", interface="org.a11y.atspi.Event.Object", member=member)
        _call(self._connection, message_bus, "AddMatch", "s", rule.serialise())
        return self._connection.filter(rule, bufsize=1_000).__enter__()

    def announced(self) -> tuple[str, bool]:
        """What is to be said next, and whether at once."""
        told = self._connection.recv_until_filtered(self._said, timeout=PATIENCE_S)
        _, politeness, _, (_, text), *_ = told.body
        return text, politeness == _ASSERTIVE

    def focused(self) -> Node:
        """What gets the focus next."""
        while True:
            told = self._connection.recv_until_filtered(self._focus, timeout=PATIENCE_S)
            if told.body[0] == "focused" and told.body[1]:
                fields = told.header.fields
                return Node(self, fields[HeaderFields.sender], fields[HeaderFields.path])

    def applications(self) -> list[Node]:
        root = Node(self, "org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
        return root.children


@dataclass(frozen=True, slots=True)
class Node:
    """One object, asked anew at each look."""

    bus: Bus
    owner: str
    path: str

    @property
    def name(self) -> str:
        return str(self.bus.property(self, _ACCESSIBLE, "Name"))

    @property
    def description(self) -> str:
        return str(self.bus.property(self, _ACCESSIBLE, "Description"))

    @property
    def role(self) -> str:
        return str(self.bus.call(self, _ACCESSIBLE, "GetRoleName")[0])

    @property
    def states(self) -> set[str]:
        low, high = self.bus.call(self, _ACCESSIBLE, "GetState")[0]
        bits = low | high << 32
        return {name for number, name in _STATES.items() if bits >> number & 1}

    @property
    def text(self) -> str:
        return str(self.bus.call(self, "org.a11y.atspi.Text", "GetText", "ii", 0, -1)[0])

    @property
    def children(self) -> list[Node]:
        found = self.bus.call(self, _ACCESSIBLE, "GetChildren")[0]
        return [Node(self.bus, owner, path) for owner, path in found if not path.endswith("/null")]

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def find(self, name: str, role: str = "") -> Node | None:
        """The first below it that is on view, of this name and role."""
        return next(
            (
                node
                for node in self.walk()
                if node.name == name and role in ("", node.role) and "showing" in node.states
            ),
            None,
        )

    def press(self) -> None:
        assert self.bus.call(self, "org.a11y.atspi.Action", "DoAction", "i", 0)[0]


def _call(
    connection: DBusConnection,
    address: Any,
    method: str,
    signature: str = "",
    *arguments: Any,
) -> tuple[Any, ...]:
    message = new_method_call(address, method, signature or None, arguments)
    reply = connection.send_and_get_reply(message, timeout=30)
    if reply.header.message_type is MessageType.error:
        raise RuntimeError(f"{address.interface}.{method} of {address.object_path}: {reply.body}")
    body: tuple[Any, ...] = reply.body
    return body
