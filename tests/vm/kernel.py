"""The kernel of the virtual machine: Debian's own package, downloaded and unpacked into a cache, never installed."""
import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile

# The cloud flavour of the package has no RDMA.
META_PACKAGE = "linux-image-amd64"
# What else of /lib/modules is worth keeping: the whole is 400 MB.
KEEP = ("kernel/arch", "kernel/crypto", "kernel/lib", "kernel/net", "kernel/fs/9p", "kernel/fs/configfs",
        "kernel/drivers/infiniband", "kernel/drivers/net", "kernel/drivers/virtio", "kernel/drivers/block",
        "kernel/drivers/char", "kernel/drivers/uio", "kernel/drivers/vfio", "kernel/drivers/iommu")


class Unavailable(Exception):
    """Something that this host lacks, with what to do."""


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "weir", "vm")


@contextlib.contextmanager
def locked(folder):
    """One process at a time fills the cache."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _package():
    text = subprocess.run(["apt-cache", "depends", META_PACKAGE], capture_output=True, text=True, check=False).stdout
    for line in text.splitlines():
        kind, _, name = line.strip().partition(": ")
        if kind == "Depends" and name.startswith("linux-image-"):
            return name
    raise Unavailable(f"apt knows no {META_PACKAGE}; run: apt-get update")


class Kernel:
    """An unpacked kernel: its image, and the files of its modules in the order in which they are to be loaded."""

    def __init__(self, root):
        self.root = root
        self.version = os.listdir(os.path.join(root, "lib", "modules"))[0]
        self.folder = os.path.join(root, "lib", "modules", self.version)
        self.image = os.path.join(root, "boot", "vmlinuz-" + self.version)
        self.needs = {}
        with open(os.path.join(self.folder, "modules.dep"), encoding="ascii") as lines:
            for line in lines:
                path, _, needs = line.strip().partition(":")
                self.needs[_name(path)] = (path, needs.split())

    def modules(self, names):
        """Paths of the named modules and of all that they need, each after what it needs."""
        ordered = []
        for name in names:
            if name not in self.needs:
                raise Unavailable(f"kernel {self.version} has no module {name}")
            path, needs = self.needs[name]
            for one in [*reversed(needs), path]:
                if one not in ordered:
                    ordered.append(one)
        return [os.path.join(self.folder, one) for one in ordered]


def _name(path):
    return os.path.basename(path).removesuffix(".ko").replace("-", "_")


def fetch():
    """The kernel from the cache; downloads it (70 MB) the first time."""
    cache = cache_folder()
    with locked(cache):
        root = os.path.join(cache, "kernel")
        if not os.path.isdir(root):
            package = _package()
            with tempfile.TemporaryDirectory(dir=cache) as work:
                _unpack(package, work)
                os.rename(os.path.join(work, "root"), root)
        return Kernel(root)


def _unpack(package, work):
    download = subprocess.run(["apt-get", "-qq", "-o", f"APT::Sandbox::User={_user()}", "download", package], cwd=work,
                              capture_output=True, text=True, check=False)
    files = [name for name in os.listdir(work) if name.endswith(".deb")]
    if download.returncode != 0 or not files:
        raise Unavailable(f"cannot download {package}: {download.stderr.strip()}; run: apt-get update")
    whole, root = os.path.join(work, "whole"), os.path.join(work, "root")
    subprocess.run(["dpkg-deb", "-x", os.path.join(work, files[0]), whole], check=True)
    shutil.move(os.path.join(whole, "boot"), os.path.join(root, "boot"))
    version = os.listdir(os.path.join(whole, "lib", "modules"))[0]
    source, target = (os.path.join(base, "lib", "modules", version) for base in (whole, root))
    os.makedirs(target)
    for name in os.listdir(source):
        if name.startswith("modules."):
            shutil.move(os.path.join(source, name), os.path.join(target, name))
    for folder in KEEP:
        if os.path.isdir(os.path.join(source, folder)):
            shutil.move(os.path.join(source, folder), os.path.join(target, folder))
    subprocess.run(["/sbin/depmod", "-b", root, version], check=True)


def _user():
    """Whoever runs this may write here; apt's own user may not."""
    return "root" if os.geteuid() == 0 else os.environ.get("USER", "nobody")
