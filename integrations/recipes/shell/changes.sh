#!/bin/sh
# Prints what has changed in a workflow's records since it was called last: one JSON object a line. Needs curl and jq.
#
#   FLOWHOOK_URL=https://flowhook.example.com FLOWHOOK_KEY=... changes.sh WORKFLOW STATE | import
#
# Each line has type, id and version; "added" has the record, "changed" and "removed" have fields: a list of key, value
# (not there: the field is gone) and previousValue. The file STATE notes how far it has come, and moves on when
# everything was printed: what reads the lines must bear to see them again. After a line {"type":"restart"} come all
# records as added: the version in STATE is not kept any longer, so drop what you have.
# Exit codes as run-workflow.sh has them.
set -eu

[ $# -eq 2 ] || { echo 'usage: changes.sh WORKFLOW STATE' >&2; exit 2; }
: "${FLOWHOOK_URL:?where the service is}" "${FLOWHOOK_KEY:?an API key with the scope read}"
workflow=$(jq -rn --arg id "$1" '$id | @uri')
state=$2
answer=$(mktemp -d)
trap 'rm -rf "$answer"' EXIT

# Into a file first: what breaks off must not be taken for all of it.
ask() {
  printf 'x-api-key: %s\n' "$FLOWHOOK_KEY" | curl --silent --show-error --compressed --connect-timeout 10 \
    --retry "${FLOWHOOK_RETRIES:-3}" --speed-limit 1 --speed-time 60 --header @- --dump-header "$answer/headers" \
    --output "$answer/body" --write-out '%{http_code}' \
    "$FLOWHOOK_URL/v1/workflows/$workflow/changes?format=ndjson&since=$1" || exit 6
}

since=0
[ ! -s "$state" ] || since=$(cat "$state")
status=$(ask "$since")
# 410: it was given up; 404: there never was such a version, as after a backup was put back.
if grep -qi '^x-error-code: *version_' "$answer/headers"; then
  status=$(ask 0)
  [ "$status" != 200 ] || echo '{"type":"restart"}'
fi
if [ "$status" != 200 ]; then
  jq -r '.error // "an answer that is not understood"' "$answer/body" >&2
  case $status in 401) exit 4 ;; 404) exit 3 ;; 429 | 5??) exit 6 ;; *) exit 1 ;; esac
fi
cat "$answer/body"
grep -i '^x-data-version:' "$answer/headers" | tail -n 1 | cut -d: -f2 | tr -d ' \r' >"$state.new"
mv "$state.new" "$state"
