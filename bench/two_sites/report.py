"""The result as one HTML file that needs nothing else: no script, no font, no picture from anywhere."""
from html import escape

from two_sites import charts

TIMELINE_SHOWN_S = 8.0

STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--dim:#66707f;--page:#f6f7f9;--card:#fff;--line:#e3e7ec;--base:#cfd6de;
--weir:#0d8a72;--plain:#c8573a;--job0:#2f6fd0;--job1:#e08a1e;--job2:#8a55c9;--job3:#1d9a8a;--job4:#d1477a;--job5:#6b8e23;
--job6:#7a6a5a;--job7:#4aa3df}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--dim:#98a3b3;--page:#12161c;--card:#1a2028;--line:#2b333e;
--base:#3d4754;--weir:#2cc3a4;--plain:#e87b5e;--job0:#6aa2f7;--job1:#f0ab4f;--job2:#b48af0;--job3:#4cc9b8;--job4:#f07ba6}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1120px;margin:0 auto;padding:36px 20px 60px}h1{font-size:28px;line-height:1.25;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:18px;margin:0 0 2px}h3{font-size:14px;margin:18px 0 4px;font-weight:600}p{margin:4px 0 12px}.dim{color:var(--dim)}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:20px 22px;margin-top:18px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:14px;margin-top:20px}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 18px}
.card b{display:block;font-size:30px;line-height:1.2;font-weight:650;letter-spacing:-.02em}.card.weir b{color:var(--weir)}
.card.bad b{color:var(--plain)}
svg{width:100%;height:auto;display:block;margin-top:6px;overflow:visible}text{fill:var(--ink);font-size:13px}
text.axis{fill:var(--dim);font-size:11.5px}text.small{font-size:12px;fill:var(--dim)}text.strong{font-weight:650;font-size:14px}
.base{fill:var(--base)}.plain{fill:var(--plain)}.weir{fill:var(--weir)}.lane{fill:var(--line);opacity:.45}
.bound{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:4 3}.tick{stroke:var(--ink);stroke-width:1.5}
.spread{stroke:var(--ink);stroke-width:3;opacity:.55}.grid{stroke:var(--line)}.unit{stroke:var(--dim);stroke-dasharray:2 3}
.curve{fill:none;stroke-width:1.6}.legend span{display:inline-block;margin-right:18px}.legend i{display:inline-block;width:11px;
height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px}.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}th,td{text-align:right;padding:6px 10px;
border-bottom:1px solid var(--line);white-space:nowrap}th{font-weight:600;color:var(--dim);font-size:13px}
th:first-child,td:first-child{text-align:left}tr.weir td{font-weight:650}code{font-size:13px;overflow-wrap:anywhere}
"""


def render(document):
    body = [_headline(document), _cards(document), _bars(document), _timelines(document), _periods(document),
            _table(document), _conditions(document)]
    title = f"Weir two-sites: {document['mix']['name']}"
    return ("<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>{''.join(body)}</main></body></html>\n")


def _best_plain(document):
    plain = {s: r["mean_slowdown"] for s, r in document["schemes"].items() if s != "weir"}
    return min(plain, key=plain.get) if plain else None


def _headline(document):
    schemes, plain = document["schemes"], _best_plain(document)
    jobs = len(document["mix"]["jobs"])
    if "weir" in schemes and plain:
        change = 1 - schemes["weir"]["mean_slowdown"] / schemes[plain]["mean_slowdown"]
        text = (f"{jobs} training jobs on one link: iterations take {100 * abs(change):.0f} % "
                f"{'less' if change >= 0 else 'more'} time with Weir")
    else:
        text = f"{jobs} training jobs on one link: what sharing it costs"
    return (f"<h1>{escape(text)}</h1><p class='dim'>{escape(document['mix']['about'])} "
            f"Mix <code>{escape(document['mix']['name'])}</code>, runs of {document['settings']['seconds']:g} s a scheme: "
            f"{document['settings']['runs']}, taken {escape(document['taken'][:16].replace('T', ' '))} UTC.</p>")


def _cards(document):
    schemes, plain, cards = document["schemes"], _best_plain(document), []
    if "weir" in schemes:
        cards.append(("weir", f"{schemes['weir']['mean_slowdown']:.3f}", "mean slowdown with Weir"))
    if plain:
        cards.append(("bad", f"{schemes[plain]['mean_slowdown']:.3f}", f"with the better plain TCP ({plain})"))
    cards.append(("", f"{document['bound']['mean_slowdown']:.3f}", "best that is possible on this link"))
    if "weir" in schemes:
        cards.append(("", f"{100 * schemes['weir']['weir_cores']:.1f} %", "of one core for all agents and the coordinator"))
    else:
        cards.append(("", f"{document['bound']['link_load']:.2f}", "load of the link if nobody waited"))
    return "<div class='cards'>" + "".join(
        f"<div class='card {css}'><b>{value}</b><span class='dim'>{escape(text)}</span></div>" for css, value, text in cards) + "</div>"


def _legend(document):
    spans = [f"<span><i style='background:{charts.job_color(i)}'></i>{escape(job['name'])}: {escape(job['what'])}"
             f"{' (guaranteed)' if job['guaranteed'] else ''}</span>" for i, job in enumerate(document["mix"]["jobs"])]
    return f"<p class='legend dim'>{''.join(spans)}</p>"


def _bars(document):
    return ("<section><h2>How much slower than alone</h2><p class='dim'>Grey is the iteration time that a job has alone; "
            "colour is what the others cost it. The dashed line is the smallest mean that the link allows, the short marks "
            f"the same for each job.</p>{_legend(document)}{charts.slowdown_bars(document)}</section>")


def _timelines(document):
    rate = document["settings"]["wan_mbit"] * 1e6 / 8
    parts = []
    for scheme, result in document["schemes"].items():
        lanes = result["runs"][0].get("timeline")
        if lanes:
            parts.append(f"<h3>{escape(scheme)}: {100 * result['link_useful_share']:.0f} % of the link used, "
                         f"{result['wan_drops']} packets dropped</h3>{charts.timeline(lanes, rate, TIMELINE_SHOWN_S)}")
    if not parts:
        return ""
    return ("<section><h2>Who sent when</h2><p class='dim'>Bytes that arrived in the western site, every 20 ms; a full lane is "
            f"the whole link. Lanes that are full one after the other are turns, half-full lanes are sharing.</p>{''.join(parts)}</section>")


def _periods(document):
    seconds = document["settings"]["seconds"]
    runs = {scheme: result["runs"][0] for scheme, result in document["schemes"].items()}
    highest = max(p / document["alone"][job["name"]]["period_ms"]
                  for run in runs.values() for job in run["jobs"] for _, p in job["iterations"])
    parts = [f"<h3>{escape(scheme)}</h3>{charts.periods(run, document['alone'], seconds, min(highest, 6.0))}"
             for scheme, run in runs.items()]
    return ("<section><h2>Every iteration</h2><p class='dim'>Period of each iteration of the first run, against the job's "
            f"period alone. Flat and low is good.</p>{_legend(document)}{''.join(parts)}</section>")


def _table(document):
    head = ("scheme", "job", "slowdown", "mean ms", "median ms", "p90 ms", "cv", "iterations")
    rows = []
    for name, entry in document["alone"].items():
        rows.append(("alone", name, 1.0, entry[entry["scheme"]], ""))
    for scheme, result in document["schemes"].items():
        rows += [(scheme, job["name"], job["slowdown"], job["period_ms"], scheme) for job in result["jobs"]]
    cells = "".join(
        f"<tr class='{escape(css)}'><td>{escape(scheme)}</td><td>{escape(job)}</td><td>{slowdown:.3f}</td><td>{p['mean']:.1f}</td>"
        f"<td>{p['median']:.1f}</td><td>{p['p90']:.1f}</td><td>{p['cv']:.3f}</td><td>{p['n']}</td></tr>"
        for scheme, job, slowdown, p, css in rows)
    return ("<section><h2>Numbers</h2><div class='wide'><table><tr>" + "".join(f"<th>{h}</th>" for h in head)
            + f"</tr>{cells}</table></div></section>")


def _conditions(document):
    machine, settings = document["machine"], document["settings"]
    versions = ", ".join(f"{k} {v}" for k, v in document["versions"].items())
    return ("<section><h2>Conditions</h2><p>Real PyTorch jobs whose compute is a sleep, every rank on a host of its own; "
            f"{settings['wan_mbit']:g} Mbit/s between the sites, {settings['nic_mbit']:g} Mbit/s per host, "
            f"{settings['delay_ms']:g} ms delay, 250 KB of queue. The first {settings['warmup_s']:.0f} s of every run are "
            "not counted: connections start up, and Weir learns the jobs. Schemes took turns, run by run.</p>"
            f"<p>{machine['cores']} cores of {escape(machine['cpu'])}, Linux {escape(machine['kernel'])}; cores busy "
            f"{100 * machine['busy']:.0f} %, steal {100 * machine['steal']:.1f} %, load {machine['loadavg']:.1f}; "
            f"{escape(versions)}.</p><p class='dim'><code>{escape(document['command'])}</code></p></section>")
