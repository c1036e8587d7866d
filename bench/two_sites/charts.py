"""SVG pictures of a result: slowdown bars, who sent when, iteration periods over time. Pure functions to text.

Colours are CSS classes and variables of report.py, so that the pictures follow light and dark mode.
"""
from html import escape

WIDTH = 1040
LABEL_X = 118  # everything to the left of it is text


def job_color(index):
    return f"var(--job{index % 8})"


def _text(x, y, text, css="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" text-anchor="{anchor}">{escape(str(text))}</text>'


def _svg(height, parts, label):
    return (f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}">' + "".join(parts) + "</svg>")


def nice_step(span, steps=6):
    """A round distance between grid lines so that about `steps` of them fit into span."""
    raw = span / steps
    scale = 10 ** len(str(int(raw))) / 10 if raw >= 1 else 0.01
    while not any(raw <= scale * m for m in (1, 2, 5)):
        scale *= 10
    return next(scale * m for m in (1, 2, 5) if raw <= scale * m)


def slowdown_bars(document):
    """For each scheme the mean and every job: grey is the time alone, colour is what waiting for the others costs."""
    schemes, limit = document["schemes"], document["bound"]
    names = [job["name"] for job in document["mix"]["jobs"]]
    worst = max([limit["mean_slowdown"]] + [j["slowdown"] for s in schemes.values() for j in s["jobs"]]
                + [s["mean_slowdown_max"] for s in schemes.values()])
    right = WIDTH - 90
    scale = (right - LABEL_X) / (worst * 1.02)
    y, parts = 26.0, []
    for scheme, result in schemes.items():
        mean = result["mean_slowdown"]
        parts += _bar(y, 24, scheme, mean, scale, "weir" if scheme == "weir" else "plain", "strong")
        low, high = (LABEL_X + result[k] * scale for k in ("mean_slowdown_min", "mean_slowdown_max"))
        if len(result["runs"]) > 1:
            parts.append(f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y + 12}" y2="{y + 12}" class="spread">'
                         f"<title>{len(result['runs'])} runs: {result['mean_slowdown_min']:.2f} to "
                         f"{result['mean_slowdown_max']:.2f}</title></line>")
        y += 30
        for index, job in enumerate(result["jobs"]):
            parts += _bar(y, 9, job["name"], job["slowdown"], scale, "", "small", job_color(index))
            best = LABEL_X + limit["job_slowdown"][names[index]] * scale
            parts.append(f'<line x1="{best:.1f}" x2="{best:.1f}" y1="{y - 1:.1f}" y2="{y + 10:.1f}" class="tick"/>')
            y += 15
        y += 14
    best, one = LABEL_X + limit["mean_slowdown"] * scale, LABEL_X + scale
    bottom = y - 8
    parts.append(f'<line x1="{best:.1f}" x2="{best:.1f}" y1="18" y2="{bottom:.1f}" class="bound"/>')
    parts.append(_text(best, 12, f"best possible {limit['mean_slowdown']:.3f}", "axis", "middle" if best - one > 130 else "start"))
    parts.append(_text(one, 12, "alone", "axis", "end"))
    return _svg(bottom + 6, parts, "Mean slowdown of each scheme")


def _bar(y, height, label, value, scale, css, text_css, color=None):
    one, end = LABEL_X + scale, LABEL_X + value * scale
    style = f' style="fill:{color}"' if color else ""
    middle = y + height / 2 + 4.5
    return [_text(LABEL_X - 10, middle, label, text_css, "end"),
            f'<rect x="{LABEL_X}" y="{y:.1f}" width="{min(one, end) - LABEL_X:.1f}" height="{height}" class="base"/>',
            f'<rect x="{one:.1f}" y="{y:.1f}" width="{max(0.0, end - one):.1f}" height="{height}" class="{css}"{style}/>',
            _text(max(one, end) + 8, middle, f"{value:.3f}" if text_css == "strong" else f"{value:.2f}", text_css)]


def timeline(lanes, link_bytes_per_s, seconds):
    """One lane a job: how much of the link it used, moment by moment. Full height is the whole link."""
    names = list(lanes["jobs"])
    lane_height, gap, group = 44, 8, 2
    step_s = lanes["step_ms"] * group / 1e3
    count = min(len(lanes["jobs"][names[0]]) // group, int(seconds / step_s))
    scale_x = (WIDTH - LABEL_X - 10) / (count * step_s)
    full = link_bytes_per_s * step_s
    parts, y = [], 4.0
    for index, name in enumerate(names):
        values = lanes["jobs"][name]
        base = y + lane_height
        points = [f"M{LABEL_X:.1f},{base:.1f}"]
        for slot in range(count):
            used = sum(values[slot * group:(slot + 1) * group]) / full
            top = base - min(1.0, used) * lane_height
            x = LABEL_X + slot * step_s * scale_x
            points.append(f"V{top:.1f}H{x + step_s * scale_x:.1f}")
        points.append(f"V{base:.1f}Z")
        parts.append(f'<rect x="{LABEL_X}" y="{y:.1f}" width="{count * step_s * scale_x:.1f}" height="{lane_height}" class="lane"/>')
        parts.append(f'<path d="{"".join(points)}" style="fill:{job_color(index)}"/>')
        parts.append(_text(LABEL_X - 10, y + lane_height / 2 + 4, name, "small", "end"))
        y += lane_height + gap
    second = 0
    while second <= count * step_s + 1e-6:
        x = LABEL_X + second * scale_x
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{y - gap + 4:.1f}" class="grid"/>')
        parts.append(_text(x, y + 10, f"{second} s", "axis", "middle" if second else "start"))
        second += 1
    return _svg(y + 16, parts, "Who sent when")


def periods(run, alone, seconds, top_ms=None):
    """Iteration period of each job over the measured time, as a multiple of its period alone; 1 is perfect."""
    height, top = 170, 8
    highest = top_ms or max(p / alone[job["name"]]["period_ms"] for job in run["jobs"] for _, p in job["iterations"])
    highest = max(1.5, highest * 1.05)
    scale_x = (WIDTH - LABEL_X - 10) / seconds
    scale_y = (height - 30) / (highest - 0.8)

    def at(value):
        return top + (highest - max(0.8, min(value, highest))) * scale_y

    parts = []
    step = nice_step((highest - 0.8), 4)
    value = 1.0
    while value <= highest:
        parts.append(f'<line x1="{LABEL_X}" x2="{WIDTH - 10}" y1="{at(value):.1f}" y2="{at(value):.1f}" '
                     f'class="{"unit" if value == 1.0 else "grid"}"/>')
        parts.append(_text(LABEL_X - 10, at(value) + 4, f"{value:.4g}×" if value != 1.0 else "alone", "axis", "end"))
        value += step
    for index, job in enumerate(run["jobs"]):
        line = [f"{LABEL_X + (t + p / 2e3) * scale_x:.1f},{at(p / alone[job['name']]['period_ms']):.1f}"
                for t, p in job["iterations"]]
        dots = "".join(f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="2"/>' for p in line) if len(line) < 150 else ""
        parts.append(f'<g style="stroke:{job_color(index)};fill:{job_color(index)}">'
                     f'<polyline points="{" ".join(line)}" class="curve"/>{dots}</g>')
    marks = nice_step(seconds, 8)
    second = 0.0
    while second <= seconds:
        parts.append(_text(LABEL_X + second * scale_x, height - 4, f"{second:g} s", "axis", "middle" if second else "start"))
        second += marks
    return _svg(height, parts, "Iteration periods over time")
