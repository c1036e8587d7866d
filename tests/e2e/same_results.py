#!/usr/bin/python3
"""Weir must not change what is learned: loss and all parameters are equal, step by step and bit by bit, with and without."""
import e2e

STEPS = 12


def train(build, with_weir):
    """{(rank, iteration): (loss, digest)} of a job that another one gets in the way of."""
    jobs = [e2e.ddp("watched", 4, 100, **{"learning-rate": 0.05}), e2e.ddp("other", 4, 50)]
    arguments = {"watched": ["--digest", f"--iterations={STEPS}"]}
    with e2e.Scenario(jobs, build, with_weir, arguments) as scenario:
        scenario.begin()
        watched = scenario.jobs["watched"]
        if with_weir:
            e2e.wait_until("both jobs are known to the coordinator",
                           lambda: scenario.managed_jobs() >= {"watched", "other"}, 5)
        e2e.wait_until(f"{STEPS} steps {'with' if with_weir else 'without'} Weir",
                       lambda: all(p.poll() is not None for p in watched.processes), 40, 0.1)
        watched.check_alive()
        return {(r["rank"], r["iteration"]): (r["loss"], r["digest"]) for r in watched.records() if "iteration" in r}


def test(args):
    plain, managed = train(args.build, False), train(args.build, True)
    e2e.check(len(plain) == 2 * STEPS, f"expected {2 * STEPS} records of the plain run, found {len(plain)}")
    e2e.check(len({digest for _, digest in plain.values()}) == STEPS, "the parameters did not change with every step")
    different = sorted(key for key in plain if plain[key] != managed.get(key))
    e2e.check(not different and len(managed) == len(plain),
              f"with Weir, (rank, step) {different[:3]} differ from the plain run")


if __name__ == "__main__":
    e2e.main(test)
