"""lossy_wire.py NAMESPACE NAMESPACE DELAY_MS LOSS SEED

A cable with faults between two network namespaces: a TAP device "wire" in each, every frame DELAY_MS late, and lost with
probability LOSS. SIGUSR1 cuts it (silently: the devices stay up), SIGUSR2 mends it. Prints "ready"; ends with SIGTERM.
"""
import os
import random
import signal
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "fabric"))
import netns  # noqa: E402
import wan_delay  # noqa: E402


class Fate:
    """Decides for each frame."""

    def __init__(self, loss, seed):
        self.loss, self.random, self.cut = loss, random.Random(seed), False

    def passes(self):
        return not self.cut and self.random.random() >= self.loss

    def set_cut(self, cut):
        self.cut = cut


def main():
    left, right, delay_ms, loss, seed = sys.argv[1:6]
    fate = Fate(float(loss), int(seed))
    signal.signal(signal.SIGUSR1, lambda *_: fate.set_cut(True))
    signal.signal(signal.SIGUSR2, lambda *_: fate.set_cut(False))
    taps = [netns.call(name, wan_delay.open_tap, "wire") for name in (left, right)]
    wan_delay.carry({a: wan_delay.Direction(a, b, float(delay_ms) / 1e3, fate.passes) for a, b in (taps, taps[::-1])})


if __name__ == "__main__":
    main()
