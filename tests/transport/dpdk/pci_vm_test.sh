#!/bin/busybox sh
# In a machine of tests/vm/vm --nics: messages of random size both ways between two PCI devices, each of a process of its
# own, with hugepages; each byte is compared.
weir-perf doctor >/tmp/doctor
grep "card 0000:00:05.0: 1af4:[0-9a-f]*, bound to uio_pci_generic" /tmp/doctor || { cat /tmp/doctor; exit 1; }
free() { sed -n 's/HugePages_Free: *//p' /proc/meminfo; }
before=$(free)
weir-perf serve --once --bind=127.0.0.1 --backend=dpdk --options=device=0000:00:05.0,address=10.9.0.1,memory_mb=96 2>/tmp/serving &
server=$!
for second in $(seq 60); do
  grep -q "serving on" /tmp/serving && break
  sleep 1
done
while_serving=$(free)
weir-perf soak --gb=0.01 --server=127.0.0.1 --backend=dpdk --options=device=0000:00:06.0,address=10.9.0.2,memory_mb=96 >/tmp/said 2>&1
status=$?
cat /tmp/serving /tmp/said
wait $server
echo "exit $status, then $?; free hugepages: $before before, $while_serving while one served, $(free) in the end"
[ $status = 0 ] && grep -q "no byte differs" /tmp/said && [ "$while_serving" -lt "$before" ] && [ "$(free)" = "$before" ]
