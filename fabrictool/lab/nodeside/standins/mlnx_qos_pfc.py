"""mlnx_qos: DCBX and PFC (-d, -f, -F, -P, --cable_len), each release with its own order and its own bugs."""

from __future__ import annotations

from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.standins.behaviour import Exit
from fabrictool.lab.nodeside.standins.mlnx_qos_eras import EIGHT
from fabrictool.lab.nodeside.standins.mlnx_qos_session import OSERROR_TRACEBACK, THEN_TYPE_ERROR, Session, message, say


class PfcSession(Session):
    asked_pfc: list[int]

    def dcbx(self) -> None:
        if self.o.dcbx is None:
            return
        if self.o.dcbx not in ("os", "fw", "get"):
            self.fail("Invalid dcbx mode command. Refer to the help.")
        try:
            if self.o.dcbx == "os":
                self.fn()
            if self.o.dcbx != "get":
                self.write(lambda fn: driver.set_dcbx(self.node, fn, self.o.dcbx == "os"))
        except driver.Refused as e:
            self.die(OSERROR_TRACEBACK.format(line=447, error=message(e)))

    def pfc(self) -> None:
        o, era = self.o, self.era
        if era.breaks_on_error:
            if o.cable_len:
                self.set_pfc(None, self.number(o.cable_len, 0, 0xFFFF, "cable_len"))
            self.single_pfc()
            if o.pfc:
                self.set_pfc(self.mask(), None)
        elif o.cable_len or o.pfc:
            # one request, with a 0 for what was not given: a bare --cable_len clears PFC (5.4 ... 24.01)
            kept = self.fn().pfc if era.writes_late and not o.pfc else [0] * 8
            delay = self.number(o.cable_len, 0, 1000 if era.writes_late else 0xFFFF, "cable_len") if o.cable_len else None
            mask = self.mask() if o.pfc else kept
            try:
                late = self.fn().cable_len if era.writes_late else 0
                self.write(lambda fn: driver.set_pfc(self.node, fn, mask, late if delay is None else delay))
            except driver.Refused as e:
                self.fail(message(e))

    def mask(self) -> list[int]:
        self.asked_pfc = self.eight(self.o.pfc, "Too many items for PFC", "pfc list must have 8 items",
                                    lambda t: self.number(t, 0, 1, "PFC"))
        return self.asked_pfc

    def set_pfc(self, mask: list[int] | None, delay: int | None) -> None:
        """Since Feb-2024. The message for a refused set is itself a bug; --cable_len reads the mask outside its guard."""
        if mask is None:
            self.readable(463)
        try:
            now = self.fn()
            want, metres = mask or list(now.pfc), now.cable_len if delay is None else delay
            self.write(lambda fn: driver.set_pfc(self.node, fn, want, metres))
        except driver.Refused as e:
            self.privilege(e)
            self.die(OSERROR_TRACEBACK.format(line=488, error=message(e)) + "\n" + THEN_TYPE_ERROR)

    def single_pfc(self) -> None:
        """-P and -F: neither prints the state."""
        if self.o.get_pfc:
            pfc = self.readable(470).pfc
            if not self.o.get_pfc.lstrip("-").isdigit():
                self.die("Traceback (most recent call last):\n  File \"/usr/bin/mlnx_qos\", line 472, in <module>\n"
                         f"ValueError: invalid literal for int() with base 10: {self.o.get_pfc!r}")
            index = int(self.o.get_pfc)
            if index not in EIGHT:
                self.fail("pfc index must be in range of 0-7")
            say(pfc[index])
            raise Exit(0)
        if self.o.specific_pfc:
            want = list(self.readable(476).pfc)
            items = self.o.specific_pfc.split(",")
            if len(items) != 8:
                self.fail("pfc list must have 8 items")
            for i in reversed(EIGHT):
                if items[i] not in ("x", "0", "1"):
                    self.fail(f"Bad value for 'PFC': {items[i]}")
                want[i] = want[i] if items[i] == "x" else int(items[i])
            self.set_pfc(want, None)
            raise Exit(0)
