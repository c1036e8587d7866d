"""wan_delay.py NAMESPACE DEVICE NAMESPACE DEVICE MILLISECONDS

Stands in for a long cable: makes a TAP device in each of two network namespaces and carries every frame from one to the
other, MILLISECONDS late, in order. Prints one line when both devices exist; ends with SIGTERM. Used where the kernel has
no netem. One loop serves both directions: two threads would only fight over the interpreter's lock.
"""
import collections
import fcntl
import os
import select
import struct
import sys
import time

import netns

HELD_BYTES_MAX = 64 << 20  # per direction; beyond it frames are dropped, as a full cable would not
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000


def open_tap(device):
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", device.encode(), _IFF_TAP | _IFF_NO_PI))
    return tap


class Direction:
    """Frames read from one TAP that wait to be written to the other."""

    def __init__(self, source, sink, delay_s, passes=lambda: True):
        """passes() is asked for each frame; one that does not pass is lost."""
        self.source, self.sink, self.delay_s, self.passes = source, sink, delay_s, passes
        self.held, self.held_bytes = collections.deque(), 0

    def take_in(self):
        for _ in range(64):  # bounded, so that the other direction gets its share of the loop
            try:
                frame = os.read(self.source, 65536)
            except BlockingIOError:
                return
            if self.passes() and self.held_bytes + len(frame) <= HELD_BYTES_MAX:
                self.held.append((time.monotonic() + self.delay_s, frame))
                self.held_bytes += len(frame)

    def let_out(self, now):
        while self.held and self.held[0][0] <= now:
            frame = self.held.popleft()[1]
            self.held_bytes -= len(frame)
            try:
                os.write(self.sink, frame)
            except OSError:
                pass  # the device's queue is full or it is down: the frame is lost, as on a wire


def main():
    namespace_a, device_a, namespace_b, device_b, delay_ms = sys.argv[1:6]
    tap_a = netns.call(namespace_a, open_tap, device_a)
    tap_b = netns.call(namespace_b, open_tap, device_b)
    delay_s = float(delay_ms) / 1e3
    carry({tap_a: Direction(tap_a, tap_b, delay_s), tap_b: Direction(tap_b, tap_a, delay_s)})


def carry(directions):
    """Until the process is ended. directions: TAP to read from -> Direction."""
    poll = select.epoll()
    for tap in directions:
        poll.register(tap, select.EPOLLIN)
    print("ready", flush=True)
    while True:
        due = [d.held[0][0] for d in directions.values() if d.held]
        wait = max(0.0, min(due) - time.monotonic()) if due else -1
        for tap, _ in poll.poll(wait):
            directions[tap].take_in()
        now = time.monotonic()
        for direction in directions.values():
            direction.let_out(now)


if __name__ == "__main__":
    main()
