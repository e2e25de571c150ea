"""Undocumented behaviour of pyinfra 3.10 that ops/ and engine/ rely on or work around.

Each test fails when the behaviour changes, also for the better: then the workaround named in its docstring can go.
"""

from __future__ import annotations

from importlib.metadata import version

from tests.contract.driver import found


def test_versions_are_the_pinned_ones() -> None:
    assert version("pyinfra").startswith("3.10.")
    assert int(version("paramiko").split(".")[0]) < 5


def test_one_byte_that_is_not_utf8_cuts_the_output_and_still_succeeds() -> None:
    """Workaround: the snapshot travels as pure ASCII with an end marker (snapshot/frame.py)."""
    got = found(r"""
        state, hosts = fleet("@local")
        h = hosts["@local"]
        ok, out = h.run_shell_command(StringCommand("sh", "-c", QuoteString(r"printf 'a\n\377\nb\n'")))
        ok2, out2 = h.run_shell_command(StringCommand("sh", "-c", QuoteString(r"printf 'a\nb\n'")))
        say(ok=ok, out=out.stdout, ok2=ok2, out2=out2.stdout)
        """)
    assert got == {"ok": True, "out": "a", "ok2": True, "out2": "a\nb"}


def test_stdin_reaches_the_command_whole() -> None:
    """Relied on: the collector is the standard input of `sh -s` (ops/collect.py)."""
    got = found("""
        state, hosts = fleet("@local")
        ok, out = hosts["@local"].run_shell_command(StringCommand("sh", "-s"), _stdin="x=" + "y" * 300000 + "; echo ${#x}")
        say(ok=ok, out=out.stdout)
        """)
    assert got == {"ok": True, "out": "300000"}


def test_a_time_limit_leaves_the_process_running() -> None:
    """Workaround: every command runs under `timeout -k` on the node itself (ops/remote.py)."""
    got = found("""
        import subprocess, uuid
        state, hosts = fleet("@local")
        tag = f"4.{uuid.uuid4().int % 10**9}"
        try:
            hosts["@local"].run_shell_command(StringCommand("sleep", tag), _timeout=1); raised = False
        except TimeoutError:
            raised = True
        left = subprocess.run(["pgrep", "-f", f"^sleep {tag}$"], capture_output=True).returncode == 0
        say(raised=raised, left=left)
        """)
    assert got == {"raised": True, "left": True}


def test_prepare_runs_the_generator_to_its_first_yield_only() -> None:
    """Relied on: what converge does after its first yield happens while executing, never while planning."""
    got = found("""
        state, hosts = fleet("@fake/a")
        seen = []
        @operation()
        def op():
            seen.append(("before", state.is_executing)); yield "true"; seen.append(("after", state.is_executing))
        prepare(state, lambda: op(name="x"))
        planned = list(seen)
        execute(state)
        say(planned=planned, all=seen)
        """)
    assert got["planned"] == [["before", False]]
    assert got["all"][1:] == [["before", True], ["after", True]]


def test_a_function_that_returns_false_fails_its_host_only() -> None:
    """Relied on: the read-back is a FunctionCommand; other hosts go on."""
    got = found("""
        state, hosts = fleet("@fake/a", "@fake/b")
        @operation()
        def op(): yield FunctionCommand(lambda state, host: host.name != "@fake/a", (), {})
        @operation()
        def then(): yield "true"
        prepare(state, lambda: (op(name="x"), then(name="y")))
        error = execute(state)
        say(error=error, failed=sorted(h.name for h in state.failed_hosts),
            ran={h.name: [d.operation_meta.executed for d in state.ops[h].values()] for h in hosts.values()})
        """)
    assert got["failed"] == ["@fake/a"]
    assert got["error"] == ""
    assert got["ran"] == {"@fake/a": [True, False], "@fake/b": [True, True]}


def test_when_every_host_fails_the_run_raises() -> None:
    """Workaround: engine/deploy.py takes "No hosts remaining!" as what failed_hosts says already."""
    got = found("""
        state, hosts = fleet("@fake/a")
        @operation()
        def op(): yield FunctionCommand(lambda state, host: False, (), {})
        prepare(state, lambda: op(name="x"))
        say(error=execute(state), failed=[h.name for h in state.failed_hosts])
        """)
    assert "No hosts remaining" in got["error"]
    assert got["failed"] == ["@fake/a"]


def test_a_command_that_reports_success_overrides_the_exit_status() -> None:
    """Relied on: ops/converge.py's Write turns an exit status into evidence."""
    got = found("""
        state, hosts = fleet("@local")
        class Write(StringCommand):
            def execute(self, state, host, args):
                ok, out = super().execute(state, host, args)
                return True, out
        @operation()
        def ours(): yield Write("sh", "-c", QuoteString("exit 7")); yield FunctionCommand(lambda state, host: True, (), {})
        prepare(state, lambda: ours(name="x"))
        execute(state)
        say(failed=[h.name for h in state.failed_hosts])
        """)
    assert got == {"failed": []}


def test_a_failing_command_ends_the_generator_where_it_stands() -> None:
    """Why the lock of a plain run is dropped in the read-back and not after it."""
    got = found("""
        state, hosts = fleet("@local")
        seen = []
        @operation()
        def op(): yield "exit 3"; seen.append("after")
        prepare(state, lambda: op(name="x"))
        execute(state)
        say(seen=seen, failed=len(state.failed_hosts))
        """)
    assert got == {"seen": [], "failed": 1}


def test_the_stamp_moves_with_every_operation_that_ran_commands() -> None:
    """Relied on: ops/collect.py's `stamp` tells whether pyinfra has run anything on the host, ours or foreign."""
    got = found("""
        from pyinfra.operations import server
        state, hosts = fleet("@local")
        seen = []
        def stamp(): return [state.is_executing, sum(d.operation_meta.executed for d in state.ops[hosts["@local"]].values())]
        @operation()
        def look(): seen.append(stamp()); host.noop("nothing"); yield from ()
        def deploy(): look(name="1"); server.shell(name="foreign", commands=["true"]); look(name="2"); look(name="3")
        prepare(state, deploy)
        del seen[:]
        execute(state)
        say(seen=seen)
        """)
    first, second, third = got["seen"]
    assert first == [True, 0]
    assert second == [True, 1]
    assert third == second


def test_an_exception_in_one_hosts_deploy_ends_the_run_for_all() -> None:
    """Workaround: rooms.findings catches what a judge raises and makes it a finding."""
    got = found("""
        state, hosts = fleet("@fake/a", "@fake/b")
        @operation()
        def op():
            if host.name == "@fake/a": raise ValueError("bad answer")
            yield "true"
        try:
            prepare(state, lambda: op(name="x")); error = ""
        except Exception as e:
            error = type(e).__name__
        say(error=error)
        """)
    assert got["error"]


def test_without_is_cli_different_operations_of_different_hosts_are_merged() -> None:
    """Workaround: engine/deploy.py sets `pyinfra.is_cli` while preparing."""
    code = """
        state, hosts = fleet("@fake/a", "@fake/b")
        @operation()
        def one(): yield "true"
        @operation()
        def two(): yield "true"
        def deploy():
            if host.name == "@fake/a": one(name="only a")
            two(name="common")
        pyinfra.is_cli = CLI
        state.set_stage(StateStage.Prepare)
        for h in hosts.values():
            with ctx_host.use(h): deploy()
        say(names=sorted(sorted(state.op_meta[o].names) for o in state.get_op_order()))
        """
    assert found(code.replace("CLI", "False"))["names"] != [["common"], ["only a"]]
    assert found(code.replace("CLI", "True"))["names"] == [["common"], ["only a"]]


def test_active_hosts_limit_a_run_to_a_wave() -> None:
    """Relied on: engine/deploy.py sets `state.active_hosts` and runs again for the next wave."""
    got = found("""
        state, hosts = fleet("@fake/a", "@fake/b")
        ran = []
        @operation()
        def op(): ran.append(host.name); yield "true"
        prepare(state, lambda: op(name="x"))
        del ran[:]
        state.set_stage(StateStage.Execute)
        state.active_hosts = {hosts["@fake/b"]}; run_ops(state); first = list(ran)
        state.active_hosts = {hosts["@fake/a"]}; run_ops(state)
        say(first=first, all=ran)
        """)
    assert got == {"first": ["@fake/b"], "all": ["@fake/b", "@fake/a"]}


def test_use_does_not_restore_the_context_after_an_exception() -> None:
    """Workaround: engine/deploy.py restores contexts through an ExitStack."""
    got = found("""
        state, hosts = fleet("@fake/a")
        before = ctx_host.get()
        try:
            with ctx_host.use(hosts["@fake/a"]): raise ValueError
        except ValueError: pass
        say(before=before is None, after=ctx_host.get() is None)
        """)
    assert got == {"before": True, "after": False}


def test_a_host_holds_foreign_objects_in_connector_data() -> None:
    """Relied on: ops/session.py keeps its session there, one for each host and state."""
    got = found("""
        state, hosts = fleet("@fake/a", "@fake/b")
        hosts["@fake/a"].connector_data["fabrictool"] = 1
        say(other="fabrictool" in hosts["@fake/b"].connector_data, own=hosts["@fake/a"].connector_data["fabrictool"])
        """)
    assert got == {"other": False, "own": 1}


def test_dry_run_exits_0_with_changes(tmp_path: object) -> None:
    """Why `fabrictool plan` exists: plain pyinfra is no gate."""
    import subprocess
    import sys
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "inventory.py").write_text('hosts = ["@local"]\n')
    (folder / "deploy.py").write_text('from pyinfra.operations import server\nserver.shell(name="x", commands=["true"])\n')
    pyinfra = Path(sys.executable).with_name("pyinfra")
    done = subprocess.run([str(pyinfra), "--dry", "inventory.py", "deploy.py"], cwd=folder, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0
    assert "change" in done.stdout + done.stderr


def test_a_yielded_command_has_run_before_the_generator_goes_on() -> None:
    """Relied on: converge looks at what a write said before it yields the next step."""
    got = found("""
        state, hosts = fleet("@local")
        class Write(StringCommand):
            ok = None
            def execute(self, state, host, args):
                self.ok, out = super().execute(state, host, args)
                return True, out
        seen = []
        @operation()
        def op():
            for code in ("0", "5"):
                w = Write("sh", "-c", QuoteString("exit " + code)); yield w; seen.append(w.ok)
        prepare(state, lambda: op(name="x"))
        execute(state)
        say(seen=seen)
        """)
    assert got == {"seen": [True, False]}
