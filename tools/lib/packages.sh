# Which Debian 12 packages the scripts need, and how they get them. Sourced after common.sh.
#
# Recommended packages are never installed: what python3-torch recommends brings the headers of Boost 1.74, and those
# conflict with the 1.81 that Weir is built with.

weir_packages_build=(
  cmake g++ make ninja-build pkg-config python3 ccache
  libboost1.81-dev protobuf-compiler libprotobuf-dev libgflags-dev libfmt-dev libspdlog-dev
  libtomlplusplus-dev libexpected-dev libsimdjson-dev libgtest-dev libgmock-dev libbenchmark-dev
  coinor-libclp-dev libdpdk-dev libibverbs-dev
)
# For the presets tidy and fuzz.
weir_packages_clang=(clang-19 clang-tidy-19 libclang-rt-19-dev)
# Real training jobs on the emulated network.
weir_packages_experiment=(python3 python3-torch python3-numpy iproute2 ethtool procps)
# Programs that must run unchanged under the preload library, and the checks.
weir_packages_test=(
  clang-format-14 git openmpi-bin libopenmpi-dev python3-zmq python3-grpcio curl iperf3 util-linux
  qemu-system-x86 busybox-static kmod ibverbs-providers perftest
)

# missing_packages PACKAGE...: prints those that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    case $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null) in
      ii*|hi*) ;;
      *) printf '%s\n' "$package" ;;
    esac
  done
}

# Reads apt's status lines and prints one line each tenth of the way.
show_install_progress() {
  local kind percent next_download=0 next_install=0
  while IFS=: read -r kind _ percent _; do
    percent=${percent%%.*}
    case $kind:$percent in
      *:*[!0-9]*|*:) ;;
      dlstatus:*)
        if [ "$percent" -ge "$next_download" ]; then
          say "  downloading packages: $percent %"
          next_download=$((percent + 20))
        fi ;;
      pmstatus:*)
        if [ "$percent" -ge "$next_install" ]; then
          say "  installing packages: $percent %"
          next_install=$((percent + 20))
        fi ;;
    esac
  done
}

# Whether packages can be installed, without hanging on a question nobody will answer. Asks for sudo's password, if at
# all, here and in the foreground.
can_become_root() {
  [ "$(id -u)" = 0 ] && return 0
  command -v sudo >/dev/null 2>&1 || return 1
  sudo -n true 2>/dev/null && return 0
  [ -t 0 ] && [ -t 2 ] && sudo -v
}

# run_apt LOG ARGS...: apt-get that asks nothing; its words go to LOG, its progress to the person. The status lines need a
# descriptor of their own: shared with the output of the packages' scripts, it makes those fail. It is opened
# inside of sudo, which closes all but the first three.
run_apt() {
  local log=$1
  shift
  local command=(sh -c 'log=$1; shift; exec "$@" 3>&1 >>"$log" 2>&1' sh "$log"
                 env DEBIAN_FRONTEND=noninteractive LC_ALL=C
                 apt-get -y -q -o Dpkg::Use-Pty=0 -o APT::Status-Fd=3)
  if [ "$(id -u)" != 0 ]; then command=(sudo -n -- "${command[@]}"); fi
  run_child "${command[@]}" "$@" > >(show_install_progress)
}

# ensure_packages WHAT_FOR PACKAGE...: installs those that are missing, and only those.
ensure_packages() {
  local purpose=$1 missing log
  shift
  if ! command -v dpkg-query >/dev/null 2>&1; then
    say "this is not Debian, so nothing is installed here; needed $purpose: $*"
    return 0
  fi
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! can_become_root; then
    die 4 "these packages are missing $purpose and only root may install them. Run this, then try again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
  fi
  say "installing ${#missing[@]} packages $purpose; on a bare machine this takes a few minutes"
  say "  ${missing[*]}"
  log=$(mktemp)
  if ! run_apt "$log" update || ! run_apt "$log" install --no-install-recommends "${missing[@]}"; then
    tail -n 20 "$log" >&2
    die 3 "installing packages failed; the last lines of apt are above, all of them in $log"
  fi
  rm -f "$log"
}
