# Shared by the scripts in tools/: talking, running one child at a time, cleaning up whatever happens. Sourced, never run.
#
# A script that sources this gets: errexit off its own choosing, WEIR_ROOT, say, die, run_child, at_exit. Every child that
# run_child starts has a process group of its own, so that an interrupt ends it with all its children, by id.

WEIR_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
weir_started=$SECONDS
weir_child=
weir_cleanups=()

# Talk goes to stderr; stdout is for results.
say() { printf '==> [%3d s] %s\n' $((SECONDS - weir_started)) "$*" >&2; }

# die EXIT_CODE MESSAGE: exit codes are 1 failed, 2 wrong usage, 3 cannot reach, 4 refused.
die() {
  printf '%s: %s\n' "${0##*/}" "$2" >&2
  exit "$1"
}

# at_exit COMMAND: run when the script ends, however it ends; last registered first.
at_exit() { weir_cleanups=("$1" ${weir_cleanups[@]+"${weir_cleanups[@]}"}); }

# run_child COMMAND ARGS...: runs it to its end and returns its status. Job control gives it its own process group.
run_child() {
  local status=0
  set -m
  "$@" </dev/null &
  weir_child=$!
  set +m
  wait "$weir_child" || status=$?
  weir_child=
  return "$status"
}

# Asks the running child's group to end, and after ten seconds makes it.
stop_child() {
  [ -n "$weir_child" ] || return 0
  local group=$weir_child waited=0
  weir_child=
  kill -TERM -- "-$group" 2>/dev/null || return 0
  while kill -0 -- "-$group" 2>/dev/null; do
    if [ "$waited" -ge 100 ]; then
      kill -KILL -- "-$group" 2>/dev/null
      return 0
    fi
    sleep 0.1
    waited=$((waited + 1))
  done
}

weir_on_exit() {
  local status=$? command
  trap '' INT TERM HUP
  stop_child
  for command in ${weir_cleanups[@]+"${weir_cleanups[@]}"}; do
    $command || true
  done
  exit "$status"
}

trap weir_on_exit EXIT
trap 'say "interrupted, cleaning up"; exit 130' INT
trap 'say "told to stop, cleaning up"; exit 143' TERM
trap 'exit 129' HUP
