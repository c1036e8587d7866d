"""The machine under the experiment: what it is, how busy it was, and whether it was stopped for a while."""
import os
import platform
import threading
import time

from fabric import netns

PAUSE_S = 1.0  # a tick this late means that the (virtual) machine stood still; the run tells nothing then
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def describe():
    model = "unknown"
    with open("/proc/cpuinfo") as text:
        for line in text:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}


def cpu_times():
    """Seconds since boot, all cores added: {"total", "idle", "steal"}."""
    with open("/proc/stat") as text:
        values = [int(v) / _TICKS_PER_S for v in text.readline().split()[1:9]]
    return {"total": sum(values), "idle": values[3] + values[4], "steal": values[7]}


def load_between(before, after):
    total = max(1e-9, after["total"] - before["total"])
    return {"busy": round(1 - (after["idle"] - before["idle"]) / total, 3),
            "steal": round((after["steal"] - before["steal"]) / total, 3),
            "loadavg": round(os.getloadavg()[0], 2)}


def process_cpu_s(pid):
    """CPU seconds that a process has used, 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as text:
            fields = text.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


class Ticker:
    """A thread that ticks every 20 ms to notice pauses and, between record_from and record_to, samples every 10 ms how many
    bytes each device of a router has sent. Owned by one run; stop() before reading the results.
    """

    TICK_S, SAMPLE_S = 0.02, 0.01

    def __init__(self, namespace):
        self._namespace = namespace
        self._stop = threading.Event()
        self._window = (0.0, 0.0)
        self.longest_gap_s = 0.0
        self.samples = []  # [(monotonic seconds, {device: bytes sent})]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def record(self, begin, end):
        self._window = (begin, end)

    def stop(self):
        self._stop.set()
        self._thread.join()

    def _run(self):
        netns.enter(self._namespace)
        with open("/proc/thread-self/net/dev") as devices:
            due = time.monotonic()
            while not self._stop.is_set():
                now = time.monotonic()
                self.longest_gap_s = max(self.longest_gap_s, now - due)
                recording = self._window[0] <= now <= self._window[1]
                if recording:
                    self.samples.append((now, _bytes_sent(devices)))
                due = now + (self.SAMPLE_S if recording else self.TICK_S)
                time.sleep(due - now)


def _bytes_sent(devices):
    devices.seek(0)
    sent = {}
    for line in devices.readlines()[2:]:
        name, values = line.split(":", 1)
        sent[name.strip()] = int(values.split()[8])
    return sent


def lanes(samples, device_jobs, begin):
    """The samples as bytes a step for each job: {"begin_s", "step_ms", "jobs": {name: [bytes, ...]}}."""
    if len(samples) < 2:
        return None
    step = Ticker.SAMPLE_S
    first = samples[0][0]
    count = int((samples[-1][0] - first) / step) + 1
    jobs = {job: [0] * count for job in device_jobs.values()}
    for (_, before), (now, after) in zip(samples, samples[1:]):
        slot = min(count - 1, int((now - first) / step))
        for device, job in device_jobs.items():
            jobs[job][slot] += after[device] - before[device]
    return {"begin_s": round(first - begin, 3), "step_ms": step * 1e3, "jobs": jobs}
