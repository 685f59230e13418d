#!/bin/sh
# Downloads the records of a workflow to a file if they have changed. Needs curl and jq.
#
#   FLOWHOOK_URL=https://flowhook.example.com FLOWHOOK_KEY=... download.sh WORKFLOW FILE.json|FILE.ndjson|FILE.csv
#
# The file is always complete: it is replaced only after a complete download. FILE.etag beside it stores its version.
# Exit codes: 0 the file is new, 8 nothing has changed, 1 to 6 as in run-workflow.sh.
set -eu

[ $# -eq 2 ] || { echo 'usage: download.sh WORKFLOW FILE' >&2; exit 2; }
: "${FLOWHOOK_URL:?the URL of the service}" "${FLOWHOOK_KEY:?an API key with the scope read}"
file=$2
case $file in *.json | *.ndjson | *.csv) ;; *) echo 'FILE ends with .json, .ndjson or .csv' >&2; exit 2 ;; esac
workflow=$(jq -rn --arg id "$1" '$id | @uri')
url="$FLOWHOOK_URL/v1/workflows/$workflow/data?format=${file##*.}"

# In the same directory, so that renaming replaces the file in one step.
new=$(mktemp "$file.XXXXXX")
trap 'rm -f "$new" "$new.asked" "$new.headers"' EXIT

{
  printf 'x-api-key: %s\n' "$FLOWHOOK_KEY"
  if [ -f "$file" ] && [ -f "$file.etag" ]; then printf 'if-none-match: %s\n' "$(cat "$file.etag")"; fi
} >"$new.asked"
status=$(curl --silent --show-error --compressed --retry "${FLOWHOOK_RETRIES:-3}" --connect-timeout 10 \
  --speed-limit 1 --speed-time 60 --header @- --dump-header "$new.headers" --output "$new" \
  --write-out '%{http_code}' "$url" <"$new.asked") || exit 6

case $status in
  200) ;;
  304) exit 8 ;;
  *)
    jq -r '.error // "unexpected response"' "$new" >&2
    case $status in 401) exit 4 ;; 404) exit 3 ;; 429 | 5??) exit 6 ;; *) exit 1 ;; esac
    ;;
esac
mv "$new" "$file"
grep -i '^etag:' "$new.headers" | tail -n 1 | cut -d: -f2- | tr -d ' \r' >"$file.etag"
