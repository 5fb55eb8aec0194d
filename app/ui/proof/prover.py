"""The same prompt without drafter, then with it, then the control run if they differ."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Final

from PySide6.QtCore import QObject, Signal

from app.conversation import ChatMessage
from app.engine import Answer, AskParams, Control, RoundRecord, Verify
from app.errors import SlipstreamError
from app.proof import Proof, Run, Subject
from app.ui.bridge import EngineBridge, Reply, Request

PLAIN: Final = 0
DRAFTED: Final = 1
"""The two runs, in the order in which they are made."""


class Prover(QObject):
    """One proof. It ends with one signal: `proved`, `failed` or `stopped`."""

    began = Signal(int)  # which run
    grew = Signal(int, str, str, list)  # which run, text, reasoning, RoundRecords
    controlling = Signal()
    proved = Signal(object)  # Proof
    failed = Signal(object)  # SlipstreamError
    stopped = Signal()  # before there was anything to compare

    def __init__(
        self,
        bridge: EngineBridge,
        chat: tuple[ChatMessage, ...],
        params: AskParams,
        subject: Subject,
        parent: QObject | None = None,
    ) -> None:
        """`params` with a seed, if anything is drawn: else the two would draw otherwise."""
        super().__init__(parent)
        self._bridge = bridge
        self._chat, self._params, self._subject = chat, params, subject
        self._request: Request | None = None
        self._stopping = False
        self._runs: list[Run] = []
        self._texts: dict[int, str] = {}  # of the tokens that came, by their ids

    def start(self) -> None:
        self._ask(PLAIN)

    def stop(self) -> None:
        """Nothing more is begun, also where what runs has ended and that is not told yet."""
        self._stopping = True
        if self._request is not None:
            self._request.cancel()

    def text_of(self, token: int) -> str:
        """Of a token of either run."""
        return self._texts[token]

    def _ask(self, which: int) -> None:
        params = replace(self._params, draft=which == DRAFTED)
        self._request = reply = self._bridge.ask(self._chat, params)
        assert isinstance(reply, Reply)
        reply.decoded.connect(lambda *told: self._grow(which, *told))
        reply.finished.connect(lambda answer: self._finish(which, answer))
        reply.failed.connect(self._fail)
        self.began.emit(which)

    def _grow(self, which: int, text: str, reasoning: str, rounds: list[RoundRecord]) -> None:
        for record in rounds:
            self._texts.update(zip(record.token_ids, record.emitted, strict=True))
        self.grew.emit(which, text, reasoning, rounds)

    def _finish(self, which: int, answer: Answer) -> None:
        self._runs.append(run := Run.of(answer))
        self._texts.update(answer.outside)
        if which == PLAIN and not (run.stopped or self._stopping):
            self._ask(DRAFTED)
        elif which == PLAIN or not run.token_ids:
            self._request = None
            self.stopped.emit()
        else:
            self._compare()

    def _compare(self) -> None:
        proof = Proof(
            subject=self._subject,
            chat=self._chat,
            params=self._params,
            plain=self._runs[PLAIN],
            drafted=self._runs[DRAFTED],
            made=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        )
        wanted = self._params.verify is Verify.GREEDY and not self._stopping
        # Where one only ends elsewhere, there is nothing for the target to choose.
        if proof.at is None or not wanted or proof.at >= len(proof.plain.token_ids):
            self._tell(proof)
            return
        self._request = request = self._bridge.compare(
            self._chat, self._params, proof.plain.token_ids, proof.at
        )
        request.finished.connect(lambda control: self._explain(proof, control))
        request.failed.connect(self._fail)
        request.cancelled.connect(lambda: self._tell(proof))
        self.controlling.emit()

    def _explain(self, proof: Proof, control: Control) -> None:
        self._tell(replace(proof, control=control))

    def _tell(self, proof: Proof) -> None:
        self._request = None
        self.proved.emit(proof)

    def _fail(self, error: SlipstreamError) -> None:
        self._request = None
        self.failed.emit(error)
