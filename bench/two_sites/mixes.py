"""Mix files: which training jobs run beside each other. bench/mixes/*.toml; the keys are explained in bench/README.md."""
import dataclasses
import os
import tomllib

from two_sites.errors import UsageError

BENCH_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIX_DIR = os.path.join(BENCH_DIR, "mixes")
JOBS_MAX = 16

# kind -> (script, {key of the mix file: (option of the script, default)}, sites of the ranks by default)
KINDS = {
    "ddp": ("ddp_job.py", {"grad-mb": 4, "compute-ms": 200, "layers": 8, "bucket-mb": 25}, ("east", "west")),
    "pipeline": ("pipeline_job.py", {"activation-kb": 500, "micro-batches": 4, "compute-ms": 150}, ("east", "west")),
    "parameter-server": ("ps_job.py", {"grad-mb": 2, "compute-ms": 200}, ("east", "west")),
}


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    kind: str
    parameters: tuple  # ((key, value), ...) handed to the script
    sites: tuple       # site of each rank
    arrive: float = 0.0          # seconds after the measured window began; 0 = with the first
    leave: float | None = None   # None = stays to the end

    @property
    def spec(self):
        """Jobs with equal specs behave the same alone, so one measurement serves all of them."""
        return self.kind, self.parameters, self.sites

    def script_arguments(self):
        script = os.path.join(BENCH_DIR, "jobs", KINDS[self.kind][0])
        options = [f"--{key}={value:g}" for key, value in self.parameters]
        return [script, "--job", self.name] + options

    def expected_period_s(self, payload_rate):
        """A guess, good enough to size a run: compute and transfer one after the other."""
        values = dict(self.parameters)
        if self.kind == "pipeline":
            size = 2 * values["activation-kb"] * 1e3 * values["micro-batches"]
        elif self.kind == "parameter-server":
            size = 2 * values["grad-mb"] * 1e6 * (len(self.sites) - 1)
        else:
            size = values["grad-mb"] * 1e6
        return values["compute-ms"] / 1e3 + size / payload_rate

    def describe(self):
        values = dict(self.parameters)
        if self.kind == "ddp":
            return f"ddp, {values['grad-mb']:g} MB gradients, {values['compute-ms']:g} ms compute"
        if self.kind == "pipeline":
            return (f"pipeline, {values['micro-batches']:g} x {values['activation-kb']:g} KB each way, "
                    f"{values['compute-ms']:g} ms compute")
        return (f"parameter server, {len(self.sites) - 1} workers, {values['grad-mb']:g} MB, "
                f"{values['compute-ms']:g} ms compute")


@dataclasses.dataclass(frozen=True)
class Mix:
    name: str
    about: str
    jobs: tuple

    def place(self):
        """{job name: [host of each rank]}: every rank has a host of its own, so jobs meet on the WAN and nowhere else."""
        used = {"east": 0, "west": 0}
        placement = {}
        for job in self.jobs:
            placement[job.name] = []
            for site in job.sites:
                placement[job.name].append(f"{site}{used[site]}")
                used[site] += 1
        return placement

    def hosts_per_site(self):
        placed = [host for hosts in self.place().values() for host in hosts]
        return tuple(sum(host.startswith(site) for host in placed) for site in ("east", "west"))


def known():
    return sorted(name[:-len(".toml")] for name in os.listdir(MIX_DIR) if name.endswith(".toml"))


def load(name):
    path = os.path.join(MIX_DIR, name + ".toml")
    if not os.path.exists(path):
        raise UsageError(f"no mix is called '{name}'; there are: {', '.join(known())} (or give --mix-file FILE.toml)")
    return load_file(path)


def load_file(path):
    try:
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
        document = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read the mix file {path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    entries = document.get("job", [])
    if not isinstance(entries, list) or not 1 <= len(entries) <= JOBS_MAX:
        raise UsageError(f"{path}: a mix has 1 to {JOBS_MAX} [[job]] tables")
    jobs = tuple(_job(path, number, entry) for number, entry in enumerate(entries, 1))
    names = [job.name for job in jobs]
    if len(set(names)) != len(names):
        raise UsageError(f"{path}: two jobs have the same name; names found: {', '.join(names)}")
    if all(job.arrive > 0 for job in jobs):
        raise UsageError(f"{path}: at least one job must be there from the start (arrive = 0)")
    about = " ".join(line[1:].strip() for line in text.splitlines() if line.startswith("#"))
    name = os.path.splitext(os.path.basename(path))[0]
    return Mix(name, about.split(" bench/README.md")[0], jobs)


def _job(path, number, entry):
    where = f"{path}: job {number} ({entry.get('name', 'without a name')})"
    kind = entry.get("kind", "ddp")
    if kind not in KINDS:
        raise UsageError(f"{where}: kind = '{kind}' is not known; kinds: {', '.join(KINDS)}")
    _, defaults, sites = KINDS[kind]
    allowed = {"name", "kind", "hosts", "arrive", "leave", *defaults}
    unknown = sorted(set(entry) - allowed)
    if unknown:
        raise UsageError(f"{where}: unknown key '{unknown[0]}'; a {kind} job takes: {', '.join(sorted(allowed))}")
    name = entry.get("name")
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"{where}: name must be letters, digits, - and _")
    parameters = tuple((key, _positive(where, key, entry.get(key, default))) for key, default in defaults.items())
    sites = tuple(entry.get("hosts", sites))
    if len(sites) < 2 or not set(sites) <= {"east", "west"} or len(set(sites)) < 2:
        raise UsageError(f'{where}: hosts must name "east" and "west", one entry a rank, for example ["east", "west"]')
    arrive, leave = float(entry.get("arrive", 0)), entry.get("leave")
    if arrive < 0 or (leave is not None and leave <= arrive):
        raise UsageError(f"{where}: arrive = {arrive:g} and leave = {leave} must be 0 <= arrive < leave")
    return Job(name, kind, parameters, sites, arrive, None if leave is None else float(leave))


def _positive(where, key, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise UsageError(f"{where}: {key} = {value!r} must be a number above 0")
    return value
