#!/usr/bin/env python3
"""Mirrors the records of a Flowhook workflow in an SQLite table, by reading only changes.

    FLOWHOOK_URL=https://flowhook.example.com FLOWHOOK_KEY=... mirror.py WORKFLOW people.db

Needs Python 3.9 or newer, and only the standard library. Records are rows (id, body) of the table `record`. Their version
is stored in the same transaction, so that an interrupted run changes nothing.
"""
import json
import os
import sqlite3
import sys
import urllib.error
import urllib.parse
import urllib.request


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """The key must not be sent to another address."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirect)


def changes(workflow, since):
    """Returns the version after the changes, and an iterator over the changes."""
    base = os.environ["FLOWHOOK_URL"].rstrip("/")
    path = f"/v1/workflows/{urllib.parse.quote(workflow, safe='')}/changes?format=ndjson&since={since}"
    request = urllib.request.Request(base + path, headers={"x-api-key": os.environ["FLOWHOOK_KEY"]})
    response = opener.open(request, timeout=60)
    return int(response.headers["x-data-version"]), (json.loads(line) for line in response)


def apply(database, change):
    if change["type"] == "removed":
        database.execute("DELETE FROM record WHERE id = ?", (change["id"],))
        return
    if change["type"] == "added":
        record = change["record"]
    else:
        (body,) = database.execute("SELECT body FROM record WHERE id = ?", (change["id"],)).fetchone()
        record = json.loads(body)
        for field in change["fields"]:
            # Without a value, the field was removed.
            if "value" in field:
                record[field["key"]] = field["value"]
            else:
                record.pop(field["key"], None)
    database.execute("INSERT OR REPLACE INTO record VALUES (?, ?)", (change["id"], json.dumps(record)))


def mirror(workflow, path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE IF NOT EXISTS record (id TEXT PRIMARY KEY, body TEXT NOT NULL)")
    database.execute("CREATE TABLE IF NOT EXISTS mirrored (workflow TEXT PRIMARY KEY, version INTEGER NOT NULL)")
    row = database.execute("SELECT version FROM mirrored WHERE workflow = ?", (workflow,)).fetchone()
    since = row[0] if row else 0
    try:
        version, found = changes(workflow, since)
    except urllib.error.HTTPError as error:
        # The version is no longer kept, or unknown because a backup was restored: read all records again.
        if not error.headers.get("x-error-code", "").startswith("version_"):
            raise
        since = 0
        version, found = changes(workflow, since)
    count = 0
    with database:
        if since == 0:
            database.execute("DELETE FROM record")
        for change in found:
            apply(database, change)
            count += 1
        database.execute("INSERT OR REPLACE INTO mirrored VALUES (?, ?)", (workflow, version))
    print(f"{workflow}: version {version}, {count} changes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: mirror.py WORKFLOW DATABASE")
    try:
        mirror(*sys.argv[1:])
    except urllib.error.HTTPError as error:
        sys.exit(f"Flowhook returned {error.code}: {error.read().decode(errors='replace')}")
