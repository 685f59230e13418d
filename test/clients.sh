#!/bin/sh
# Installs generators of clients in other languages, if these languages are installed, and runs their tests.
set -eu
cd "$(dirname "$0")/.."
tools="$PWD/node_modules/.cache/clients"
mkdir -p "$tools/bin"

if command -v python3 > /dev/null; then
  python3 -m venv "$tools/python"
  "$tools/python/bin/pip" install --quiet --disable-pip-version-check openapi-python-client==0.29.1
  ln -sf "$tools/python/bin/openapi-python-client" "$tools/bin/"
fi

if command -v go > /dev/null; then
  GOBIN="$tools/bin" go install github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2
  (cd test/fixtures/generated-client && go mod download)
fi

PATH="$tools/bin:$PATH" npx node --test test/api/generated-client.test.ts
