"""How good any scheme could be: lower bounds on the slowdown of periodic jobs that share a link.

A job that alone needs the share u of the link's time cannot run at slowdown s with less than u/s of it. So on one link
sum(u_j / s_j) <= 1 and s_j >= 1. Two answers matter: all jobs equally slow, max(1, sum u); and the smallest mean, where
Lagrange gives s_j = max(1, c sqrt(u_j)): small jobs are hardly slowed, because that costs the others little.
"""
import math


def equal_slowdown(loads):
    """The smallest slowdown that all jobs of one link can have at once. loads: share of the link each needs alone."""
    return max(1.0, sum(loads))


def best_slowdowns(loads):
    """The slowdowns with the smallest mean. O(n^2) for n jobs, and n is small.

    Jobs whose optimum lies below 1 are clamped there one by one, smallest load first: the others then share what is left.
    """
    if sum(loads) <= 1.0:
        return [1.0] * len(loads)
    order = sorted(range(len(loads)), key=lambda j: loads[j])
    for clamped in range(len(order)):
        free = order[clamped:]
        left = 1.0 - sum(loads[j] for j in order[:clamped])
        scale = sum(math.sqrt(loads[j]) for j in free) / left
        if scale * math.sqrt(loads[free[0]]) >= 1.0:
            break
    return [max(1.0, scale * math.sqrt(u)) for u in loads]


def of_phases(phases, jobs):
    """Bounds for jobs that come and go. phases: [(seconds, {job: load})]; returns (equal, best mean, {job: best}).

    Iterations done in a phase add up, so the slowdown of a job over its life is the harmonic mean of those of its phases.
    """
    time, equal_work, best_work = ({job: 0.0 for job in jobs} for _ in range(3))
    for seconds, loads in phases:
        names = list(loads)
        best = best_slowdowns([loads[name] for name in names])
        equal = equal_slowdown(loads.values())
        for name, slowdown in zip(names, best):
            time[name] += seconds
            equal_work[name] += seconds / equal
            best_work[name] += seconds / slowdown
    equals = {job: time[job] / equal_work[job] for job in jobs}
    bests = {job: time[job] / best_work[job] for job in jobs}
    return sum(equals.values()) / len(jobs), sum(bests.values()) / len(jobs), bests


def phases_of(windows, loads, seconds):
    """Cuts the measured time where a job arrives or leaves. windows: {job: (arrive, leave or None)}."""
    edges = {0.0, float(seconds)}
    for arrive, leave in windows.values():
        edges.update(e for e in (arrive, leave) if e is not None and 0 < e < seconds)
    cuts = sorted(edges)
    phases = []
    for begin, end in zip(cuts, cuts[1:]):
        there = {job: loads[job] for job, (arrive, leave) in windows.items()
                 if arrive <= begin and (leave is None or leave >= end)}
        phases.append((end - begin, there))
    return phases
