#!/bin/bash
# Contends for a lock by `etcdctl lock`, which is Go's Mutex: see README.md for the commands it reads. Each hold has a process and
# a lease of its own.
set -euo pipefail
export ETCDCTL_API=3 ETCDCTL_ENDPOINTS=$1
name=$2
ttl=$3
over=$(mktemp -u)
trap 'rm -f "$over"' EXIT

# etcdctl ends with this script, even if the script is killed.
tied=()
if command -v setpriv > /dev/null; then tied=(setpriv --pdeathsig KILL); fi

# Becomes a process that runs a command while holding the lock. The command gets the token as ETCD_LOCK_REV, and no input.
locked() { exec "${tied[@]}" etcdctl lock "$name" --ttl "$ttl" -- sh -euc "$1" sh "${@:2}" </dev/null; }

while read -r command times directory; do
  case $command in
    hold)
      locked 'echo "held $ETCD_LOCK_REV"; while [ ! -e "$1" ] && kill -0 "$PPID"; do sleep 0.05; done' "$over" &
      ;;
    release)
      touch "$over"
      wait
      rm -f "$over"
      echo released
      ;;
    cycle)
      # Adds 1 to the counter, reading and then writing it, while nobody else is inside.
      for ((cycle = 0; cycle < times; cycle++)); do
        (locked '
          echo "held $ETCD_LOCK_REV"
          mkdir "$1/inside"
          seen=$(cat "$1/counter")
          echo $((seen + 1)) > "$1/counter"
          echo "etcdctl $ETCD_LOCK_REV" >> "$1/history"
          rmdir "$1/inside"
        ' "$directory")
      done
      echo cycled
      ;;
  esac
done
