#!/bin/sh
# Verifies a webhook of Flowhook (Standard Webhooks, v1) with the openssl program. Use it only for manual checks: the key
# appears in the process list, and the comparison does not take constant time.
#
#   WEBHOOK_SECRET=whsec_... WEBHOOK_ID=... WEBHOOK_TIMESTAMP=... WEBHOOK_SIGNATURE=... sh verify.sh < body
set -eu

refuse() {
  echo "refused: $1"
  exit 1
}

id=${WEBHOOK_ID:-} timestamp=${WEBHOOK_TIMESTAMP:-} signatures=${WEBHOOK_SIGNATURE:-}
if [ -z "$id" ] || [ -z "$timestamp" ] || [ -z "$signatures" ]; then
  refuse 'a webhook- header is missing'
fi
case $timestamp in *[!0-9]* | ?????????????*) refuse 'the timestamp is not a number of seconds' ;; esac
# Leading zeros would be read as an octal number.
sent=$(printf '%s' "$timestamp" | sed 's/^0*//')
age=$(($(date +%s) - ${sent:-0}))
if [ "$age" -gt 300 ] || [ "$age" -lt -300 ]; then
  refuse 'the timestamp is too old or too new'
fi

key=$(printf '%s' "${WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
expected=$({
  printf '%s.%s.' "$id" "$timestamp"
  cat
} | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)

set -f
for signature in $signatures; do
  if [ "$signature" = "v1,$expected" ]; then
    echo verified
    exit 0
  fi
done
refuse 'no signature matches'
