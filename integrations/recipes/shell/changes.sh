#!/bin/sh
# Prints the changes in a workflow's records since the last call, one JSON object per line. Needs curl and jq.
#
#   FLOWHOOK_URL=https://flowhook.example.com FLOWHOOK_KEY=... changes.sh WORKFLOW STATE | import
#
# Each line has type, id and version; "added" has the record, "changed" and "removed" have fields: a list of key, value
# (missing if the field was removed) and previousValue. The file STATE stores the last version. It is updated after
# everything was printed, so the reader may see lines twice. If the version in STATE no longer exists, a line
# {"type":"restart"} comes first and then all records as added: discard what you have.
# The exit codes are those of run-workflow.sh.
set -eu

[ $# -eq 2 ] || { echo 'usage: changes.sh WORKFLOW STATE' >&2; exit 2; }
: "${FLOWHOOK_URL:?the URL of the service}" "${FLOWHOOK_KEY:?an API key with the scope read}"
workflow=$(jq -rn --arg id "$1" '$id | @uri')
state=$2
answer=$(mktemp -d)
trap 'rm -rf "$answer"' EXIT

# Writes to a file first: an interrupted response must not count as complete.
ask() {
  printf 'x-api-key: %s\n' "$FLOWHOOK_KEY" | curl --silent --show-error --compressed --connect-timeout 10 \
    --retry "${FLOWHOOK_RETRIES:-3}" --speed-limit 1 --speed-time 60 --header @- --dump-header "$answer/headers" \
    --output "$answer/body" --write-out '%{http_code}' \
    "$FLOWHOOK_URL/v1/workflows/$workflow/changes?format=ndjson&since=$1" || exit 6
}

since=0
[ ! -s "$state" ] || since=$(cat "$state")
status=$(ask "$since")
# 410: the version is no longer kept; 404: it never existed, for example after a backup was restored.
if grep -qi '^x-error-code: *version_' "$answer/headers"; then
  status=$(ask 0)
  [ "$status" != 200 ] || echo '{"type":"restart"}'
fi
if [ "$status" != 200 ]; then
  jq -r '.error // "unexpected response"' "$answer/body" >&2
  case $status in 401) exit 4 ;; 404) exit 3 ;; 429 | 5??) exit 6 ;; *) exit 1 ;; esac
fi
cat "$answer/body"
grep -i '^x-data-version:' "$answer/headers" | tail -n 1 | cut -d: -f2 | tr -d ' \r' >"$state.new"
mv "$state.new" "$state"
