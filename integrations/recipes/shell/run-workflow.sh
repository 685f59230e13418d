#!/bin/sh
# Queues a job of a workflow, waits for its end, prints the job, and ends as it did. Needs curl (7.55) and jq.
#
#   FLOWHOOK_URL=https://flowhook.example.com FLOWHOOK_KEY=... run-workflow.sh WORKFLOW
#
# Exit codes, those of the `flowhook` command: 0 finished, 1 failed or canceled, 2 wrong usage, 3 no such workflow,
# 4 the key is refused, 5 the workflow takes no jobs, 6 unreachable, 7 no end after FLOWHOOK_WITHIN seconds (3600).
# A job that is there already is waited for, as if it were ours. FLOWHOOK_EVERY (2): seconds between two looks.
set -eu

[ $# -eq 1 ] || { echo 'usage: run-workflow.sh WORKFLOW' >&2; exit 2; }
: "${FLOWHOOK_URL:?where the service is}" "${FLOWHOOK_KEY:?an API key with the scopes queue and read}"
answer=$(mktemp -d)
trap 'rm -rf "$answer"' EXIT

# Prints the status. The key goes through standard input, because arguments can be seen by everybody on the machine.
ask() {
  printf 'x-api-key: %s\n' "$FLOWHOOK_KEY" | curl --silent --show-error --max-time 60 \
    --retry "${FLOWHOOK_RETRIES:-3}" --header @- --dump-header "$answer/headers" --output "$answer/body" \
    --write-out '%{http_code}' "$@" || exit 6
}

stop() {
  jq -r '.error // "an answer that is not understood"' "$answer/body" >&2
  case $1 in 401) exit 4 ;; 404) exit 3 ;; 400) exit 5 ;; 429 | 5??) exit 6 ;; *) exit 1 ;; esac
}

workflow=$(jq -rn --arg id "$1" '$id | @uri')
# One key for this run: whatever is sent again after a broken connection queues no second job.
run=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')
status=$(ask --request POST --header "idempotency-key: $run" "$FLOWHOOK_URL/v1/workflows/$workflow/queue")
job=$(grep -i '^x-job-id:' "$answer/headers" | tail -n 1 | cut -d: -f2 | tr -d ' \r' || true)
[ -n "$job" ] || stop "$status"
[ "$status" = 200 ] || echo "A job is there already; waiting for it: $job" >&2

until=$(($(date +%s) + ${FLOWHOOK_WITHIN:-3600}))
while :; do
  status=$(ask "$FLOWHOOK_URL/v1/jobs/$job")
  [ "$status" = 200 ] || stop "$status"
  case $(jq -r .state "$answer/body") in finished | failed | canceled) break ;; esac
  if [ "$(date +%s)" -ge "$until" ]; then
    echo "It has not ended within ${FLOWHOOK_WITHIN:-3600} s; it goes on: $job" >&2
    exit 7
  fi
  sleep "${FLOWHOOK_EVERY:-2}"
done
jq . "$answer/body"
# An error is said where cron looks for it.
jq -e 'if .state == "finished" then true else "\(.state): \(.error // .reason // "")\n" | stderr | false end' \
  "$answer/body" >/dev/null || exit 1
