#!/usr/bin/env bash
# Measures the release build against DuckDB on an export of its own. See README.md.
# usage: tests/bench/run.sh [ITEMS] [RUNS]
set -euo pipefail
cd "$(dirname "$0")/../.."
items=${1:-1000000}
runs=${2:-5}
target=${CARGO_TARGET_DIR:-target}
bench=$target/bench
venv=$target/interop-venv

cargo build --release --quiet
dynamorph=$target/release/dynamorph

# The environment that tests/it/python.rs makes too.
if ! cmp --silent tests/python/requirements.txt "$venv/installed.txt"; then
  python3 -m venv --clear "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement tests/python/requirements.txt
  cp tests/python/requirements.txt "$venv/installed.txt"
fi
python=$venv/bin/python

if ! [ -f "$bench/export-$items/done" ]; then
  rm -rf "$bench/export-$items"
  "$python" tests/bench/make_export.py "$bench/export-$items" --items "$items" > /dev/null
  touch "$bench/export-$items/done"
fi
export=$(echo "$bench/export-$items"/AWSDynamoDB/*)

for job in parquet import; do
  case $job in parquet) pipeline=warehouse ;; import) pipeline=tables ;; esac
  rm -rf "$bench/$job"
  echo "$job: $items items, $(nproc) cores"
  "$python" tests/bench/measure.py --runs "$runs" --name dynamorph --name duckdb \
    -- "$dynamorph" run "tests/bench/$pipeline.toml" --from "$export" --to "$job:$bench/$job" --work "$bench/work" --overwrite --quiet \
    -- "$python" tests/bench/peer_duckdb.py "$job" "$export" "$bench/peer-$job"
done
