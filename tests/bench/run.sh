#!/usr/bin/env bash
# Measures the release build against DuckDB, Polars and ClickHouse on an export of its own, and its ways to read against each other. See README.md.
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

for format in json ion; do
  folder=$bench/export-$format-$items
  if ! [ -f "$folder/done" ]; then
    rm -rf "$folder"
    "$python" tests/bench/make_export.py "$folder" --items "$items" --format "$format" > /dev/null
    touch "$folder/done"
  fi
done
export=$(echo "$bench/export-json-$items"/AWSDynamoDB/*)
ion=$(echo "$bench/export-ion-$items"/AWSDynamoDB/*)

lake="$dynamorph run tests/bench/warehouse.toml --from $export --to parquet:$bench/parquet --work $bench/work-parquet --overwrite --quiet"

# A peer that gives another result is not compared.
rm -rf "$bench/parquet"
$lake > /dev/null
for peer in duckdb polars chdb; do
  job="$python tests/bench/peer_$peer.py parquet $export $bench/peer-$peer"
  echo "parquet: $items items, $(nproc) cores, $peer"
  $job
  # ClickHouse has no null for lists.
  "$python" tests/bench/same_results.py $([ "$peer" != chdb ] || echo --empty-is-null) "$bench/parquet" "$bench/peer-$peer"
  "$python" tests/bench/measure.py --runs "$runs" --name dynamorph --name "$peer" -- $lake -- $job
done

rm -rf "$bench/import"
echo "import: $items items, $(nproc) cores"
"$python" tests/bench/measure.py --runs "$runs" --name dynamorph --name duckdb \
  -- "$dynamorph" run tests/bench/tables.toml --from "$export" --to "import:$bench/import" --work "$bench/work" --overwrite --quiet \
  -- "$python" tests/bench/peer_duckdb.py import "$export" "$bench/peer-import"

echo "files for import and Parquet: $items items, all entities"
"$python" tests/bench/measure.py --runs "$runs" --name import --name parquet \
  -- "$dynamorph" run tests/bench/tables.toml --from "$export" --to "import:$bench/import" --work "$bench/work" --overwrite --quiet \
  -- "$dynamorph" run tests/bench/tables.toml --from "$export" --to "parquet:$bench/tables" --work "$bench/work-tables" --overwrite --quiet

read_from() {
  echo "$dynamorph run tests/bench/warehouse.toml --from $1 --to parquet:$bench/$2 --work $bench/work-$2 --overwrite --quiet"
}

echo "parquet from Amazon Ion and from DynamoDB JSON: $items items"
"$python" tests/bench/measure.py --runs "$runs" --name ion --name json -- $(read_from "$ion" from-ion) -- $(read_from "$export" from-json)

mkfifo "$bench/s3-$$.in" "$bench/s3-$$.out"
"$python" tests/bench/serve_s3.py "$bench/export-json-$items" bench < "$bench/s3-$$.in" > "$bench/s3-$$.out" &
exec 3> "$bench/s3-$$.in" 4< "$bench/s3-$$.out"
rm "$bench/s3-$$.in" "$bench/s3-$$.out"
read -r address <&4
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1 AWS_ENDPOINT_URL_S3=$address
echo "parquet from S3 and from disk: $items items"
"$python" tests/bench/measure.py --runs "$runs" --name s3 --name disk \
  -- $(read_from "s3://bench/AWSDynamoDB/$(basename "$export")" from-s3) -- $(read_from "$export" from-disk)
exec 3>&-
wait
