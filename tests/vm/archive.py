"""Archives that the kernel unpacks into memory when it starts (cpio, format newc), and what programs need in them."""
import os
import stat
import subprocess


class Archive:
    """Files of the machine by path, each once; written out at the end."""

    def __init__(self):
        self.entries = {}

    def folder(self, path):
        path = path.strip("/")
        if path and path not in self.entries:
            self.folder(os.path.dirname(path))
            self.entries[path] = (stat.S_IFDIR | 0o755, b"")

    def link(self, path, target):
        self._put(path, stat.S_IFLNK | 0o777, target.encode())

    def text(self, path, content, mode=0o644):
        self._put(path, stat.S_IFREG | mode, content.encode())

    def file(self, path, source, mode=0o755):
        with open(source, "rb") as content:
            self._put(path, stat.S_IFREG | mode, content.read())

    def program(self, source, path):
        """A program or library of this host with every library that it is linked with, those at the places they have here."""
        self.file(path, source)
        for library in libraries_of(source):
            if library.strip("/") not in self.entries:
                self.file(library, library)

    def _put(self, path, mode, content):
        self.folder(os.path.dirname(path))
        self.entries[path.strip("/")] = (mode, content)

    def write(self, out):
        for number, (path, (mode, content)) in enumerate(self.entries.items(), 1):
            out.write(_record(number, path, mode, content))
        out.write(_record(0, "TRAILER!!!", 0, b""))


def _record(number, path, mode, content):
    name = path.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return _padded(head) + _padded(content)


def _padded(data):
    return data + b"\0" * (-len(data) % 4)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def libraries_of(path):
    """Paths of the shared libraries that the loader would map for this file; none for a script or a static program."""
    if not is_elf(path):
        return []
    found = []
    for line in subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout.splitlines():
        words = line.split()
        path = words[2] if len(words) > 2 and words[1] == "=>" else words[0] if words else ""
        if path.startswith("/"):
            found.append(path)
    return found
