"""Run something inside a named network namespace without leaving the one we are in.

A network namespace belongs to a thread on Linux. Whatever must happen inside one is therefore done by a short-lived
thread that enters it; processes started from that thread are born there. No `ip netns exec`, no second mount namespace.
"""
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import threading

NETNS_DIR = "/run/netns"
_CLONE_NEWNET = 0x40000000
_SIOCETHTOOL = 0x8946
_ETHTOOL_SET_TSO, _ETHTOOL_SET_GSO, _ETHTOOL_SET_GRO = 0x1F, 0x24, 0x2C
_libc = ctypes.CDLL(None, use_errno=True)


def enter(name):
    """Moves the calling thread into the namespace for good."""
    with open(os.path.join(NETNS_DIR, name), "rb") as handle:
        if _libc.setns(handle.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter network namespace {name}")


def call(name, function, *args, **kwargs):
    """Returns function(*args, **kwargs) evaluated inside the namespace; exceptions come through."""
    outcome = {}

    def body():
        try:
            enter(name)
            outcome["value"] = function(*args, **kwargs)
        except BaseException as error:  # handed to the caller's thread, where it belongs
            outcome["error"] = error

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


def popen(name, argv, **kwargs):
    """subprocess.Popen inside the namespace."""
    return call(name, subprocess.Popen, argv, **kwargs)


def write_sysctls(settings):
    """For use with call(): settings is {"net.ipv4.ip_forward": 1, ...}."""
    for key, value in settings.items():
        with open("/proc/sys/" + key.replace(".", "/"), "w") as out:
            out.write(str(value))


def disable_offloads(devices):
    """For use with call(). With offloads on, one packet is 64 KiB and the queues of a slow link mean nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for device in devices:
            for command in (_ETHTOOL_SET_TSO, _ETHTOOL_SET_GSO, _ETHTOOL_SET_GRO):
                value = ctypes.create_string_buffer(struct.pack("II", command, 0))
                request = struct.pack("16sQ16x", device.encode(), ctypes.addressof(value))
                fcntl.ioctl(control, _SIOCETHTOOL, request)


def processes_in(name):
    """Pids of all processes that live in the namespace."""
    try:
        wanted = os.stat(os.path.join(NETNS_DIR, name)).st_ino
    except FileNotFoundError:
        return []
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            if os.stat(f"/proc/{entry}/ns/net").st_ino == wanted:
                found.append(int(entry))
        except OSError:
            continue  # it ended, or it is not ours to see
    return found
