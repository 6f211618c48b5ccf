"""The launcher, with workers that are small programs without JAX."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from jaxvars import launch
from jaxvars.launch.options import parse
from jaxvars.launch.supervisor import Death, first
from jaxvars.launch.worker import environment, meeting_port

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are of POSIX")

# Signals that the program that runs the tests ignores would be ignored by all its children.
START = """
import os, signal, sys
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
TIMEOUT = 60.0


class Running:
    """A launcher that runs; its output is in two files, which may grow."""

    def __init__(self, folder: Path, *words: str, **env: str) -> None:
        self.out, self.err = folder / "stdout", folder / "stderr"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", START, "-m", "jaxvars.launch", *words],
                cwd=folder, env=os.environ | env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            )  # fmt: skip

    @property
    def stdout(self) -> str:
        return self.out.read_text()

    @property
    def stderr(self) -> str:
        return self.err.read_text()

    def pids(self) -> list[int]:
        """The processes that the workers have said they are."""
        return [int(pid) for pid in re.findall(r"pid=(\d+)", self.stdout)]

    def wait_for(self, pattern: str, count: int = 1) -> None:
        until = time.monotonic() + TIMEOUT
        while len(re.findall(pattern, self.stdout + self.stderr)) < count:
            assert time.monotonic() < until, f"no {pattern!r} in:\n{self.stdout}{self.stderr}"
            time.sleep(0.01)

    def wait(self) -> int:
        return self.process.wait(TIMEOUT)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start the launcher with a program: `start("print(1)", "-n", "2")`."""
    started: list[Running] = []

    def start(program: str, *options: str, words: tuple[str, ...] = (), **env: str) -> Running:
        (tmp_path / "program.py").write_text(PRELUDE + program)
        running = Running(tmp_path, "--backoff", "0", *options, "program.py", *words, **env)
        started.append(running)
        return running

    yield start
    for running in started:
        for pid in [running.process.pid, *running.pids()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        running.process.wait(TIMEOUT)


PRELUDE = """
import os, signal, subprocess, sys, time
rank, size = int(os.environ["JAXVARS_RANK"]), int(os.environ["JAXVARS_WORLD_SIZE"])
attempt = int(os.environ["JAXVARS_ATTEMPT"])

def meet():
    "Wait until all workers of this attempt are here."
    open(f"{attempt}-{rank}", "w").close()
    while not all(os.path.exists(f"{attempt}-{r}") for r in range(size)):
        time.sleep(0.01)

"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")  # a zombie that is not reaped yet runs no more
    with suppress(FileNotFoundError):
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    return not state.parent.parent.joinpath("self").exists()


def assert_gone(pids: list[int]) -> None:
    assert pids, "no worker said who it is"
    until = time.monotonic() + TIMEOUT
    while left := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < until, f"{left} still run"
        time.sleep(0.01)


def children_of(pid: int) -> list[int]:
    """The children of a process, where the system tells."""
    with suppress(FileNotFoundError):
        return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    return []


# ---------------------------------------------------------------- what workers are told, and say
def test_workers_are_told_who_they_are_and_get_the_arguments(start):
    program = 'print(rank, size, attempt, os.environ["JAXVARS_COORDINATOR"], sys.argv[1:])'
    running = start(program, "-n", "2", words=("--restarts", "x", "-n"))
    assert running.wait() == 0
    found = re.findall(r"\[(\d)\] (\d) 2 0 127\.0\.0\.1:(\d+) (.*)", running.stdout)
    assert {(a, b) for a, b, _, _ in found} == {("0", "0"), ("1", "1")}
    assert len({port for _, _, port, _ in found}) == 1
    assert {words for *_, words in found} == {"['--restarts', 'x', '-n']"}


def test_a_module_runs_as_with_python_m(start, tmp_path):
    (tmp_path / "tool.py").write_text("import sys; print(__name__, sys.argv[1:])")
    running = Running(tmp_path, "-m", "tool", "-x")
    assert running.wait() == 0, running.stderr
    assert running.stdout == "[0] __main__ ['-x']\n"


def test_neither_the_launcher_nor_its_help_imports_jax(tmp_path):
    # With a JAX that cannot be imported, and a worker that does not need it.
    (tmp_path / "jax.py").write_text("raise RuntimeError('the launcher imported jax')")
    (tmp_path / "program.py").write_text("print('fine')")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    running = Running(tmp_path, "program.py", PYTHONPATH=path)
    assert running.wait() == 0, running.stderr
    assert running.stdout == "[0] fine\n"
    running = Running(tmp_path, "--help", PYTHONPATH=path)
    assert running.wait() == 0, running.stderr
    assert "--min-processes M" in running.stdout


def test_lines_are_never_torn(start):
    program = """
for i in range(300):
    sys.stdout.write(f"{rank}:" + "x" * 50); sys.stdout.flush()
    sys.stdout.write("y" * 5000 + "\\n"); sys.stdout.flush()
sys.stderr.write("bar 1\\rbar 2\\rthe end without a newline")
"""
    running = start(program, "-n", "3")
    assert running.wait() == 0, running.stderr
    lines = running.stdout.splitlines()
    assert len(lines) == 900
    assert all(re.fullmatch(r"\[(\d)\] \1:x{50}y{5000}", line) for line in lines)
    assert sorted(running.stderr.splitlines())[2::3][:1] == ["[0] the end without a newline"]
    assert running.stderr.count("] bar 2\n") == 3


def test_logs_are_a_file_for_each_worker_and_attempt(start, tmp_path):
    program = """
print("out", rank, attempt)
print("err", rank, attempt, file=sys.stderr)
meet()
time.sleep(600 * (rank == 0 and attempt == 0))
sys.exit(rank == 1 and attempt == 0)
"""
    running = start(program, "-n", "2", "--logs", "logs/deep")
    assert running.wait() == 0, running.stderr
    assert running.stdout == ""
    assert "err 1 0" in running.stderr, "the report has the last lines of what died"
    files = sorted(p.relative_to(tmp_path / "logs/deep") for p in tmp_path.glob("logs/deep/*/*"))
    assert [*map(str, files)] == [f"attempt-{a}/rank-{r}.log" for a in (0, 1) for r in (0, 1)]
    title, *lines = (tmp_path / "logs/deep/attempt-1/rank-1.log").read_text().splitlines()
    assert re.fullmatch(r"\[launch\] [\d-]+ [\d:]+ attempt 1: worker 1 of 2", title)
    assert sorted(lines) == ["err 1 1", "out 1 1"]


# ---------------------------------------------------------------- ends and restarts
def test_a_worker_may_end_before_the_others(start):
    program = """
while rank == 1 and not os.path.exists("ended"):
    time.sleep(0.01)
print("done")
"""
    running = start(program, "-n", "2")
    running.wait_for(r"\[0\] done")
    (running.out.parent / "ended").touch()
    assert running.wait() == 0
    assert "[1] done" in running.stdout
    assert running.stderr == ""


@pytest.mark.parametrize(
    ("program", "status", "words"),
    [
        ("sys.exit(7)", 7, "exited with status 7"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero"),
        ("os.kill(os.getpid(), 9)", 137, r"was killed by SIGKILL after .* memory runs out"),
        ("os.abort()", 134, "was killed by SIGABRT"),
    ],
)
def test_the_status_is_that_of_the_worker_that_failed(start, program, status, words):
    waits = "print(f'pid={os.getpid()}'); meet(); time.sleep(600 * (rank == 0)); "
    running = start(waits + program, "-n", "2", "--restarts", "0")
    assert running.wait() == status
    assert re.search(words, running.stderr), running.stderr
    assert "The other 1 worker would have waited for it: killed." in running.stderr
    assert f"Exit status {status}, that of worker 1" in running.stderr
    assert_gone(running.pids())


def test_restarts_are_bounded_and_wait_longer_each_time(start):
    options = ("--restarts", "3", "--backoff", "0.05", "--max-backoff", "0.15")
    running = start("print('run', attempt); sys.exit(attempt + 3)", *options)
    assert running.wait() == 6, "the last attempt counts"
    assert re.findall(r"run (\d)", running.stdout) == ["0", "1", "2", "3"]
    told = re.findall(r"Restart (\d) of 3, in ([\d.]+) s", running.stderr)
    assert told == [("1", "0.05"), ("2", "0.1"), ("3", "0.15")]
    assert "Gave up after 3 restarts" in running.stderr
    ends = re.findall(r"attempt (\d): worker 0 of 1 \(process \d+\) exited with status (\d)",
                      running.stderr.split("What happened")[1])  # fmt: skip
    assert ends == [("0", "3"), ("1", "4"), ("2", "5"), ("3", "6")]


def test_a_program_that_dies_twice_goes_on_with_fewer_workers(start):
    program = "print('of', size); meet(); sys.exit(size == 3 and rank == 2)"
    running = start(program, "-n", "3", "--min-processes", "2")
    assert running.wait() == 0, running.stderr
    assert sorted(re.findall(r"of (\d)", running.stdout)) == ["2"] * 2 + ["3"] * 6
    assert "Two deaths in a row with 3 workers: going on with 2." in running.stderr
    assert "All 2 workers ended well, after 2 restarts." in running.stderr


def test_of_workers_that_die_together_the_cause_is_named():
    def death(code: int, **known: float) -> Death:
        return Death(0, 1, 3, 1, code, 0.0, datetime.min, (), **known)

    kill, fail, lost = death(-9), death(1), death(-6)
    assert first([lost, fail, kill]) is kill
    assert first([lost, fail]) is fail
    assert first([lost]) is lost
    later, sooner = death(1, place=5), death(1, place=4)
    assert first([later, sooner]) is sooner
    cause = death(1, place=7, wrote=10.0, silent=0.3)  # it took long to be gone
    follows = death(-6, place=6, wrote=10.2, silent=0.05)
    assert first([follows, cause]) is cause
    mute = death(3, place=6, wrote=1.0, silent=9.0)
    assert first([cause, mute]) is mute


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system does not say")
def test_the_first_of_two_deaths_is_known_when_the_launcher_slept(start):
    program = """
print(f"pid={os.getpid()}")
while not os.path.exists(f"end-{rank}"):
    time.sleep(0.01)
sys.exit(rank + 3)
"""
    running = start(program, "-n", "3", "--restarts", "0")
    running.wait_for("pid=", 3)
    running.process.send_signal(signal.SIGSTOP)
    for rank in (1, 0, 2):
        (running.out.parent / f"end-{rank}").touch()
        (pid,) = re.findall(rf"\[{rank}\] pid=(\d+)", running.stdout)
        assert_gone([int(pid)])
    running.process.send_signal(signal.SIGCONT)
    assert running.wait() == 4
    assert "worker 0 of 3" in running.stderr
    assert "at about the same time" in running.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the Linux kernel")
def test_a_worker_whose_end_takes_long_is_among_the_dead(start):
    # Killed, and its sockets closed; but a thread of it is still there when another one has failed.
    program = """
import ctypes, threading
if rank == 1:
    threading.Thread(target=time.sleep, args=(600,)).start()
    print(f"pid={os.getpid()}")
    ctypes.CDLL(None).pthread_exit(None)
while not os.path.exists("go"):
    time.sleep(0.01)
sys.exit(1)
"""
    running = start(program, "-n", "2", "--restarts", "0")
    running.wait_for("pid=")
    (pid,) = running.pids()
    while is_running(pid):  # its first thread
        time.sleep(0.01)
    (running.out.parent / "go").touch()
    assert running.wait() == 137
    assert "worker 1 of 2" in running.stderr.splitlines()[0]
    assert "worker 0 of 2" in running.stderr.splitlines()[2]
    assert "killed.\n" not in running.stderr


# ---------------------------------------------------------------- nothing is left
CHILD = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(f"pid={child.pid}"); print(f"pid={os.getpid()}")
"""


def test_children_of_workers_go_with_them(start):
    running = start(CHILD + "meet(); sys.exit(rank)", "-n", "2", "--restarts", "0")
    assert running.wait() == 1
    assert len(running.pids()) == 4
    assert_gone(running.pids())


def test_nothing_is_left_when_the_launcher_is_killed(start):
    running = start(CHILD + "time.sleep(600)", "-n", "2")
    running.wait_for("pid=", 4)
    helpers = children_of(running.process.pid)
    running.process.kill()
    assert running.wait() == -signal.SIGKILL
    assert_gone([*running.pids(), *helpers])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the Linux kernel")
def test_workers_die_with_the_launcher_even_without_the_guard(start):
    running = start("print(f'pid={os.getpid()} of={os.getppid()}'); time.sleep(600)")
    running.wait_for("pid=")
    (guard,) = set(children_of(running.process.pid)) - set(running.pids())
    os.kill(guard, signal.SIGKILL)
    running.process.kill()
    running.wait()
    assert_gone(running.pids())


# ---------------------------------------------------------------- told to stop
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_is_passed_on_and_workers_may_end_by_themselves(start, name):
    program = f"""
def end(*_):
    print("saved"); sys.exit(0)
signal.signal(signal.{name}, end)
print(f"pid={{os.getpid()}}"); time.sleep(600)
"""
    running = start(program, "-n", "2")
    running.wait_for("pid=", 2)
    running.process.send_signal(getattr(signal, name))
    assert running.wait() == 128 + getattr(signal, name)
    assert running.stdout.count("saved") == 2
    assert f"Stopped by {name}; no worker is left." in running.stderr
    assert "Restart" not in running.stderr


STUBBORN = """
signal.signal(signal.SIGINT, lambda *_: print("no"))
print(f"pid={os.getpid()}")
while True:
    time.sleep(600)
"""


def test_the_second_ctrl_c_kills(start):
    running = start(STUBBORN, "-n", "2", "--grace", "500")
    running.wait_for("pid=", 2)
    for _ in range(3):  # at once: as one, since `timeout` and others send a signal twice
        running.process.send_signal(signal.SIGINT)
    running.wait_for(r"\] no", 2)
    time.sleep(0.5)
    assert running.process.poll() is None
    running.process.send_signal(signal.SIGINT)
    assert running.wait() == 130
    assert "2 workers did not end in time: killed." in running.stderr
    assert_gone(running.pids())


def test_who_does_not_end_in_time_is_killed(start):
    running = start(STUBBORN, "--grace", "0.2")
    running.wait_for("pid=")
    running.process.send_signal(signal.SIGINT)
    assert running.wait() == 130
    assert "1 worker did not end in time: killed." in running.stderr
    assert_gone(running.pids())


def test_a_signal_ends_the_pause_before_a_restart(start):
    running = start("sys.exit(1)", "--backoff", "500", "--max-backoff", "500")
    running.wait_for("Restart 1 of 3, in 500 s")
    running.process.send_signal(signal.SIGTERM)
    assert running.wait() == 143


# ---------------------------------------------------------------- the command line
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", "0", __file__], "'0' is not a whole number from 1"),
        (["-n", "1", "--min-processes", "2", __file__], "--min-processes 2 is more than the -n 1"),
        (["nowhere.py"], "there is no file 'nowhere.py' (write -m before the name of a module)"),
        (["--backoff", "-1", __file__], "'-1' is not a number of seconds"),
        (["--logs", f"{__file__}/x", __file__], "cannot make"),
        (["--restart", "1", __file__], "unrecognized arguments: --restart"),
        (["--gpus-per-process", "1", "--devices-per-process", "1", __file__], "choose one"),
        (["-n", "2", "--gpus-per-process", "2", __file__], "4 GPUs are asked for, and"),
        ([], "the following arguments are required: program"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_starts(words, message, capsys, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    with pytest.raises(SystemExit) as stopped:
        parse(words)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def environment_of(*words: str, rank: int = 1, **given: str) -> dict[str, str]:
    options = parse([*words, __file__])
    return environment(options, given, rank=rank, size=2, attempt=3, port=55)


def test_virtual_devices_are_asked_for_once():
    env = environment_of(
        "--devices-per-process", "3", XLA_FLAGS="--a=1 --xla_force_host_platform_device_count=8 --b"
    )
    assert env["XLA_FLAGS"] == "--a=1 --b"
    assert (env["JAX_NUM_CPU_DEVICES"], env["JAX_PLATFORMS"]) == ("3", "cpu")


def test_gpus_are_dealt_out(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert environment_of("--gpus-per-process", "2")["CUDA_VISIBLE_DEVICES"] == "2,3"
    env = environment_of("--gpus-per-process", "2", CUDA_VISIBLE_DEVICES="7,5,3,1")
    assert env["CUDA_VISIBLE_DEVICES"] == "3,1"


def test_a_proxy_is_not_asked_for_the_way_to_this_machine():
    env = environment_of(https_proxy="http://somewhere", no_proxy="example.org")
    assert env["no_proxy"] == "example.org,127.0.0.1"
    assert "no_proxy" not in environment_of()


def test_what_the_user_set_is_kept():
    assert environment_of(PYTHONUNBUFFERED="0")["PYTHONUNBUFFERED"] == "0"
    assert environment_of()["PYTHONUNBUFFERED"] == "1"


def test_the_port_is_kept_until_the_coordinator_takes_it():
    import socket

    with meeting_port(0) as port, socket.socket() as other:
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # as gRPC does
        other.bind(("127.0.0.1", port))
        other.listen()
        socket.create_connection(("127.0.0.1", port)).close()
    with meeting_port(1234) as port:
        assert port == 1234


def test_a_process_that_is_not_a_launcher_goes_on(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["-m", "-n"])
    for words, expected in [
        (["python", "-m", "jaxvars.launch", "-n"], True),
        (["python", "-X", "utf8", "-mjaxvars.launch", "-n"], True),
        (["python", "-m", "other", "-n"], False),
    ]:
        monkeypatch.setattr(sys, "orig_argv", words)
        assert launch.is_asked_for() is expected
    monkeypatch.setattr(sys, "argv", ["jaxvars.launch"])
    assert not launch.is_asked_for()


def test_a_reader_that_goes_away_ends_all(tmp_path):
    (tmp_path / "program.py").write_text(
        "import os, time\nprint(f'pid={os.getpid()}')\nwhile True: print('x'); time.sleep(0.01)"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "jaxvars.launch", "program.py"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        pid: Any = re.search(rb"pid=(\d+)", process.stdout.readline())
        process.stdout.close()
        assert process.wait(TIMEOUT) == 141
        assert_gone([int(pid[1])])
    finally:
        process.kill()
        process.communicate()
