"""From the lines that jobs print to periods, slowdowns and shares. Pure arithmetic, no IO."""
import math
import statistics

from two_sites.errors import ExperimentError


def percentile(values, share):
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summary(periods_ms):
    """{mean, median, p90, cv, n} of iteration periods."""
    mean = statistics.fmean(periods_ms)
    deviation = statistics.pstdev(periods_ms) if len(periods_ms) > 1 else 0.0
    return {"mean": round(mean, 2), "median": round(statistics.median(periods_ms), 2),
            "p90": round(percentile(periods_ms, 0.9), 2), "cv": round(deviation / mean, 4), "n": len(periods_ms)}


def periods_between(starts, begin, end):
    """[(start, period_ms)] of the iterations that lie wholly between begin and end; starts are seconds, ascending."""
    inside = [t for t in starts if begin <= t <= end]
    return [(a, (b - a) * 1e3) for a, b in zip(inside, inside[1:])]


def job_result(job, lines, begin, end):
    """What one job did between begin and end. lines: its iteration records, in order."""
    periods = periods_between([line["t"] for line in lines], begin, end)
    if not periods:
        raise ExperimentError(f"job {job.name} made no whole iteration in {end - begin:.0f} s: give a larger --seconds")
    values = [ms for _, ms in periods]
    return {"name": job.name, "period_ms": summary(values), "link_bytes": lines[-1]["link_bytes"],
            "iterations": [[round(t - begin, 4), round(ms, 2)] for t, ms in periods]}


def useful_share(job_results, payload_rate):
    """Gradients and activations that crossed the link, in bytes a second, as a share of what it can carry."""
    rate = sum(r["link_bytes"] / (r["period_ms"]["mean"] / 1e3) * r.get("presence", 1.0) for r in job_results)
    return round(rate / payload_rate, 4)


def scheme_result(runs, alone_ms):
    """Joins the runs of one scheme. Periods are pooled; mean slowdowns are kept apart to show their spread."""
    jobs, per_run = [], []
    for run in runs:
        for job in run["jobs"]:
            job["slowdown"] = round(job["period_ms"]["mean"] / alone_ms[job["name"]], 4)
        run["mean_slowdown"] = round(statistics.fmean(job["slowdown"] for job in run["jobs"]), 4)
        per_run.append(run["mean_slowdown"])
    for index, job in enumerate(runs[0]["jobs"]):
        pooled = [ms for run in runs for _, ms in run["jobs"][index]["iterations"]]
        stats = summary(pooled)
        jobs.append({"name": job["name"], "period_ms": stats, "slowdown": round(stats["mean"] / alone_ms[job["name"]], 4)})
    return {"mean_slowdown": round(statistics.median(per_run), 4),
            "mean_slowdown_min": min(per_run), "mean_slowdown_max": max(per_run), "jobs": jobs,
            "link_useful_share": round(statistics.median(run["link_useful_share"] for run in runs), 4),
            "wan_drops": sum(run["wan_drops"] for run in runs),
            "weir_cores": round(statistics.fmean(run["weir_cores"] for run in runs), 4), "runs": runs}
