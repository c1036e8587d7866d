"""The result as a table for people."""


def render(document):
    names = [job["name"] for job in document["mix"]["jobs"]]
    lines = [f"Mix {document['mix']['name']}, link load {document['bound']['link_load']:.2f}. "
             f"Slowdown = mean iteration period / period alone; 1.00 is perfect.", ""]
    width = max([6] + [len(n) for n in names])
    head = ["scheme", "mean", "spread", *names, "link used", "WAN drops", "Weir CPU"]
    rows = [head]
    for scheme, result in document["schemes"].items():
        spread = f"{result['mean_slowdown_min']:.2f}-{result['mean_slowdown_max']:.2f}"
        cpu = f"{100 * result['weir_cores']:.1f} %" if scheme == "weir" else "-"
        rows.append([scheme, f"{result['mean_slowdown']:.3f}", spread,
                     *[f"{job['slowdown']:.2f} ({job['period_ms']['mean']:.0f} ms)" for job in result["jobs"]],
                     f"{100 * result['link_useful_share']:.0f} %", str(result["wan_drops"]), cpu])
    limit = document["bound"]
    rows.append(["best possible", f"{limit['mean_slowdown']:.3f}", "",
                 *[f"{limit['job_slowdown'][n]:.2f}" for n in names], "", "", ""])
    rows.append(["alone", "1.000", "", *[f"1.00 ({document['alone'][n]['period_ms']:.0f} ms)" for n in names], "", "", ""])
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines += ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]
    if limit["equal_slowdown"] > limit["mean_slowdown"] + 0.001:
        lines.append(f"(with all jobs slowed alike, {limit['equal_slowdown']:.3f} would be the best)")
    costs = [f"{n} {100 * document['alone'][n]['weir_overhead']:+.1f} %" for n in names
             if "weir_overhead" in document["alone"][n]]
    if costs:
        lines.append(f"Alone under Weir, against alone without it: {', '.join(costs)}")
    lines.append(_verdict(document))
    load = document["machine"]
    lines += ["", f"Machine: {load['cores']} cores {load['cpu']}, busy {100 * load['busy']:.0f} %, "
                  f"steal {100 * load['steal']:.0f} %, load {load['loadavg']:.1f}. Differences under 5 % mean nothing here."]
    return "\n".join(line for line in lines if line is not None)


def _verdict(document):
    """One sentence that says who is faster, when there is something to compare."""
    schemes = document["schemes"]
    plain = {s: r["mean_slowdown"] for s, r in schemes.items() if s != "weir"}
    if "weir" not in schemes or not plain:
        return None
    best = min(plain, key=plain.get)
    change = 1 - schemes["weir"]["mean_slowdown"] / plain[best]
    return (f"Iterations under Weir take {100 * abs(change):.1f} % {'less' if change >= 0 else 'MORE'} time on average than under "
            f"{best}, the better plain TCP.")
