#!/bin/sh
# Queues a job of a workflow, waits until it ends, prints it, and exits with its outcome. Needs curl (7.55) and jq.
#
#   FLOWHOOK_URL=https://flowhook.example.com FLOWHOOK_KEY=... run-workflow.sh WORKFLOW
#
# Exit codes (as in the `flowhook` command): 0 finished, 1 failed or canceled, 2 wrong usage, 3 no such workflow,
# 4 the key is refused, 5 the workflow accepts no jobs, 6 unreachable, 7 not ended after FLOWHOOK_WITHIN seconds (3600).
# If there is already an unfinished job, waits for that one. FLOWHOOK_EVERY (2): seconds between two requests.
set -eu

[ $# -eq 1 ] || { echo 'usage: run-workflow.sh WORKFLOW' >&2; exit 2; }
: "${FLOWHOOK_URL:?the URL of the service}" "${FLOWHOOK_KEY:?an API key with the scopes queue and read}"
answer=$(mktemp -d)
trap 'rm -rf "$answer"' EXIT

# Prints the status. The key is passed on standard input, because every user of the machine can read arguments.
ask() {
  printf 'x-api-key: %s\n' "$FLOWHOOK_KEY" | curl --silent --show-error --max-time 60 \
    --retry "${FLOWHOOK_RETRIES:-3}" --header @- --dump-header "$answer/headers" --output "$answer/body" \
    --write-out '%{http_code}' "$@" || exit 6
}

stop() {
  jq -r '.error // "unexpected response"' "$answer/body" >&2
  case $1 in 401) exit 4 ;; 404) exit 3 ;; 400) exit 5 ;; 429 | 5??) exit 6 ;; *) exit 1 ;; esac
}

workflow=$(jq -rn --arg id "$1" '$id | @uri')
# One key for this run: a request repeated after a broken connection queues no second job.
run=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')
status=$(ask --request POST --header "idempotency-key: $run" "$FLOWHOOK_URL/v1/workflows/$workflow/queue")
job=$(grep -i '^x-job-id:' "$answer/headers" | tail -n 1 | cut -d: -f2 | tr -d ' \r' || true)
[ -n "$job" ] || stop "$status"
[ "$status" = 200 ] || echo "There is already a job; waiting for it: $job" >&2

until=$(($(date +%s) + ${FLOWHOOK_WITHIN:-3600}))
while :; do
  status=$(ask "$FLOWHOOK_URL/v1/jobs/$job")
  [ "$status" = 200 ] || stop "$status"
  case $(jq -r .state "$answer/body") in finished | failed | canceled) break ;; esac
  if [ "$(date +%s)" -ge "$until" ]; then
    echo "The job has not ended within ${FLOWHOOK_WITHIN:-3600} s and continues: $job" >&2
    exit 7
  fi
  sleep "${FLOWHOOK_EVERY:-2}"
done
jq . "$answer/body"
# Errors go to standard error, where cron looks for them.
jq -e 'if .state == "finished" then true else "\(.state): \(.error // .reason // "")\n" | stderr | false end' \
  "$answer/body" >/dev/null || exit 1
