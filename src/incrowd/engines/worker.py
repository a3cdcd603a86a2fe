"""Worker: files of others are read in a process of their own, which is ended at a limit of time or memory.

Readers of workbooks, Parquet and databases allocate what a file asks for, and no bound on the file's size is a bound on
that.  So no reader is trusted with the memory of a server or a terminal: a worker reads, another process watches it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.limits import FOREIGN_BYTES, FREE_FACTOR, MEMORY_BYTES, PROCESSOR_SECONDS, WAITING_SECONDS
from incrowd.errors import IncrowdError, LimitExceeded, ReaderCrashed, Refused

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Tell = Callable[[int, int | None], None]
SETTING = "INCROWD_LIMITS"
_PAUSE = 0.01  # seconds between looks at a worker's memory and time
_OFTEN = 0.1  # seconds between reports of progress
_INTERRUPTED = 130
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG
_LIFT = f"If this is your own data, add --no-limits, or set {SETTING}=off."


@dataclass(frozen=True)
class WorkerLimits:
    """What a worker may use: seconds of processor time, seconds on the clock, bytes of memory; None for any."""

    processor: float | None = PROCESSOR_SECONDS
    clock: float | None = WAITING_SECONDS
    memory: float | None = MEMORY_BYTES

    def times(self, factor: float) -> WorkerLimits:
        """Return limits that are so much larger.

        >>> WorkerLimits(18, 60, None).times(2)
        WorkerLimits(processor=36, clock=120, memory=None)
        """
        scaled = (None if amount is None else amount * factor for amount in (self.processor, self.clock, self.memory))
        return WorkerLimits(*scaled)

    def for_size(self, size: int) -> WorkerLimits:
        """Return the limits for files of this size together: in proportion, where it is large."""
        return self.times(max(1.0, size / FOREIGN_BYTES))


LIMITED = WorkerLimits()
COMPARED = LIMITED.times(FREE_FACTOR)
_UNLIMITED = WorkerLimits(None, None, None)


@dataclass
class _Worker:
    """What this process is as a worker: its watcher, its first limits, and the files that it has read."""

    watcher: Connection
    limits: WorkerLimits
    sizes: dict[str, int]


_SELF: list[_Worker] = []
"""This process as a worker; empty in all others."""


def is_off() -> bool:
    """Whether limits are lifted for this process, or cannot be had: Windows has no such processes."""
    return os.environ.get(SETTING, "").lower() == "off" or not hasattr(os, "fork")


def is_worker() -> bool:
    """Whether this process is a worker."""
    return bool(_SELF)


def count_file(path: str | Path, size: int) -> None:
    """Let the limits of this worker grow with a file that it reads, once a file."""
    if not _SELF or _SELF[0].sizes.get(str(path), -1) >= size:
        return
    worker = _SELF[0]
    worker.sizes[str(path)] = size
    _tell_limits(worker.limits.for_size(sum(worker.sizes.values())))


def lift_limits() -> None:
    """Lift the limits of this worker: its rows come from the data holder's own database, cluster or program."""
    if _SELF:
        _tell_limits(_UNLIMITED)


def _tell_limits(limits: WorkerLimits) -> None:
    _limit_processor(limits.processor)
    _SELF[0].watcher.send(("limits", limits))


def _limit_processor(seconds: float | None) -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = hard if seconds is None else int(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _become_worker(watcher: Connection, limits: WorkerLimits) -> None:
    """Take limits, and end with the process that watches."""
    _SELF[:] = [_Worker(watcher, limits, {})]
    _limit_processor(limits.processor)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)


def fork_worker(limits: WorkerLimits) -> int | None:
    """Go on in a worker, where this returns None; return its exit code in the process that was here before.

    Both write to the same terminal.  A limit that is hit raises `LimitExceeded`, here.
    """
    from multiprocessing import Pipe

    receiver, sender = Pipe(duplex=False)
    worker = os.fork()
    if worker == 0:
        receiver.close()
        _become_worker(sender, limits)
        return None
    sender.close()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: _pass_on(received, worker))
    try:
        watch(worker, receiver, limits)
    except BaseException:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
        raise
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    return code if code >= 0 else _ended(-code)


def _pass_on(number: int, worker: int) -> None:
    """Pass a signal on; a terminal sends Ctrl-C to both already."""
    if number != signal.SIGINT or not os.isatty(0):
        with suppress(ProcessLookupError):  # it ended in the meantime
            os.kill(worker, number)


def _ended(number: int) -> int:
    """Return the exit code of a worker that a signal ended, or raise what that means."""
    if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        return _INTERRUPTED
    if number == signal.SIGXCPU:
        raise LimitExceeded(_late())
    name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
    raise ReaderCrashed(
        f"reading ended in a crash ({name}): the file is damaged, or made to do this, or the machine is out of memory."
    )


def _late() -> str:
    return f"stopped: reading took longer than files of this size need. A file can be made to do this. {_LIFT}"


def watch(worker: int, receiver: Connection, limits: WorkerLimits, tell: Tell | None = None) -> tuple[Any, ...] | None:
    """Wait for the result of a worker or for its end, and raise `LimitExceeded` as soon as it exceeds a limit."""
    start = time.monotonic()
    progress: Any = (0, None)
    while True:
        if receiver.poll(_PAUSE):
            try:
                message = receiver.recv()
            except (EOFError, OSError):  # the worker died: the caller reports it by its exit code
                return None
            match message:
                case ("limits", WorkerLimits() as limits):
                    pass
                case ("progress", *progress):
                    pass
                case ("result" | "error" | "fault", *_):
                    return tuple(message)
        if limits.memory is not None and (used := _peak_memory(worker)) > limits.memory:
            raise LimitExceeded(
                f"stopped at {used / 1e6:,.0f} MB of memory: reading took more than files of this size need. A file "
                f"can be made to do this. {_LIFT}"
            )
        if limits.clock is not None and time.monotonic() > start + limits.clock:
            raise LimitExceeded(_late())
        if tell is not None:  # even where nothing is new: who is told can end the work
            tell(*progress)


def _peak_memory(process: int) -> int:
    """Return the largest memory of a process in bytes, or 0 where the system does not say."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return int(line.split()[1]) * 1024


def limited(function: Callable[..., Any], *arguments: Any, tell: Tell | None = None, stop: Tell | None = None) -> Any:
    """Call a function of a module in a worker of its own, and return its result or raise its error.

    With `tell`, the function takes one as well, to say how many rows it has read; `stop` is asked now and then, and may
    end the work by an error, as `tell` may.

    >>> limited(max, 3, 4)
    4
    """
    own = {} if tell is None else {"tell": tell}
    if is_off():
        return function(*arguments, **own)
    from multiprocessing import get_context

    context = get_context("spawn")  # a server has threads, which do not survive a fork
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(sender, function, arguments, tell is not None), daemon=True)
    process.start()
    sender.close()
    listening = tell or stop
    try:
        return _outcome(watch(process.pid or 0, receiver, LIMITED, listening), process)
    finally:
        process.kill()
        process.join()
        receiver.close()


def _outcome(message: tuple[Any, ...] | None, process: Any) -> Any:
    match message:
        case ("result", value):
            return value
        case ("error", kind, text):
            raise _error(kind, text)
        case ("fault", name):
            raise RuntimeError(name)
    process.join()
    if process.exitcode is not None and process.exitcode < 0:
        _ended(-process.exitcode)
    raise ReaderCrashed("reading ended without a result: the file is damaged, or made to do this.")


def _error(kind: type[IncrowdError], text: str) -> IncrowdError:
    try:
        return kind(text)
    except TypeError:  # a class that takes more than its text
        return Refused(text)


def _serve(watcher: Connection, function: Callable[..., Any], arguments: tuple[Any, ...], telling: bool) -> None:
    """Call a function, as a worker, and send what comes of it; an unexpected error is named, its text may hold data."""
    _become_worker(watcher, LIMITED)
    last = [0.0]

    def tell(done: int, total: int | None) -> None:
        if time.monotonic() > last[0] + _OFTEN:
            last[0] = time.monotonic()
            watcher.send(("progress", done, total))

    outcome: tuple[Any, ...]
    try:
        outcome = ("result", function(*arguments, **({"tell": tell} if telling else {})))
    except IncrowdError as error:
        outcome = ("error", type(error), str(error))
    except Exception as error:  # noqa: BLE001 (the last resort)
        outcome = ("fault", type(error).__name__)
    watcher.send(outcome)
