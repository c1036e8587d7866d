#!/bin/busybox sh
# In a machine of tests/vm/vm: weir-perf faults between its two RDMA devices. What is gone must be declared dead, what passes
# must cost nothing but time, and afterwards the cable is in order.
# The device repeats each 0.54 s, not each 4.3 s: it has to get through between a flap and the bound.
export NCCL_IB_TIMEOUT=17
faults() {
  weir-perf faults --backend=rdma --options=devices==rxe0 --peer_options=devices==rxe1 --link_program=lossy-cable --gb=0.01 --output=csv "$@" 2>/tmp/talk | tee -a /tmp/seen
}
faults --scenarios=kill,freeze,cut --dead_after_ms=2000
faults --scenarios=flap --lasts_ms=300
faults --scenarios=cut --link_program=/bin/false >/dev/null
cat /tmp/talk
for expected in "kill,.*,peer declared dead" "freeze,.*,went on" "cut,.*,peer declared dead" "flap,.*,went on"; do
  grep -q "^$expected," /tmp/seen || { echo "expected: $expected"; exit 1; }
done
grep -q '"/bin/false 100" ended with 1' /tmp/talk || { echo "a program that does not cut the link is not refused"; exit 1; }
! /usr/sbin/tc qdisc show | grep netem
