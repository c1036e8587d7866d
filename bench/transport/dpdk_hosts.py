"""Two network namespaces with a cable for frames of DPDK between them, and weir-perf in both."""
import contextlib
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from fabric import netns  # noqa: E402


def allow_forwarding():
    with open("/proc/sys/net/ipv4/ip_forward", "w") as setting:
        setting.write("1")


class DpdkHosts:
    """The cable for frames is a veth pair, or for memif a socket; on a second one the two weir-perf meet. Use as a context."""

    def __init__(self, build, driver, mtu=1500, options="", device_options=""):
        self.program = os.path.join(build, "bin", "weir-perf")
        self.names = [f"wd{os.getpid()}-{side}" for side in ("left", "right")]
        self.driver, self.mtu, self.options, self.device_options = driver, mtu, options, device_options
        self.addresses = ["10.9.0.1", "10.9.0.2"]
        self.running, self.before = [], []  # before: words in front of each weir-perf.
        self.folder = tempfile.TemporaryDirectory(prefix="weir-dpdk-")

    def __enter__(self):
        try:
            for name in self.names:
                subprocess.run(["ip", "netns", "add", name], check=True)
            for cable in ("frames", "meet"):
                subprocess.run(["ip", "link", "add", cable, "netns", self.names[0], "type", "veth", "peer", "name", cable,
                                "netns", self.names[1]], check=True)
            for number, name in enumerate(self.names, 1):
                for line in (f"link set frames mtu {self.mtu} up", "link set meet up", f"addr add 10.8.0.{number}/24 dev meet"):
                    subprocess.run(["ip", "-n", name, *line.split()], check=True)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *_):
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.communicate()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)
        self.folder.cleanup()

    def route(self):
        """Puts a router between the two ends of the cable for frames, which takes what they send through its kernel: the frames
        that leave it for the right host are in the queue of its device "to2". To be called before anything is started."""
        router = f"wd{os.getpid()}-router"
        subprocess.run(["ip", "netns", "add", router], check=True)
        self.names.append(router)
        netns.call(router, allow_forwarding)
        for number, name in enumerate(self.names[:2], 1):
            subprocess.run(["ip", "-n", name, "link", "del", "frames"], check=number == 1, stderr=subprocess.DEVNULL)
            subprocess.run(["ip", "link", "add", "frames", "mtu", str(self.mtu), "netns", name, "type", "veth", "peer", "name",
                            f"to{number}", "mtu", str(self.mtu), "netns", router], check=True)
            for line in (f"-n {name} link set frames up", f"-n {router} link set to{number} up",
                         f"-n {router} addr add 10.9.{number}.254/24 dev to{number}"):
                subprocess.run(["ip", *line.split()], check=True)
        self.addresses = [f"10.9.{number}.1/24,gateway=10.9.{number}.254" for number in (1, 2)]
        return router

    def device(self, host):
        """As --options=device= of weir-perf wants it."""
        if self.driver == "memif":
            role = ("client", "server")[host]
            return f"net_memif0;role={role};socket={self.folder.name}/memif.sock;socket-abstract=no{self.device_options}"
        return f"net_{self.driver}0;iface=frames{self.device_options}"

    def popen(self, host, command):
        process = netns.popen(self.names[host], command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        return process

    def start(self, host, *arguments):
        options = f"device={self.device(host)},address={self.addresses[host]}{self.options}"
        return self.popen(host, [*self.before, self.program, *arguments, "--backend=dpdk", f"--options={options}", "--dead_after_ms=2000"])

    def serve(self, *flags):
        """weir-perf serve on the right, when it serves; None when it does not start."""
        server = self.start(1, "serve", "--bind=10.8.0.2", *flags)
        said = "..."
        while said and "serving on" not in said:  # Drivers have things to say first.
            said = server.stderr.readline()
        return server if said else None

    def ask(self, *arguments):
        """weir-perf on the left, which asks the one that serves."""
        return self.start(0, *arguments, "--server=10.8.0.2")
