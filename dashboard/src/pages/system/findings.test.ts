/** The order of findings on the system page. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SystemFinding } from 'flowhook-client';
import { checkTitle, sortFindings } from './findings.ts';

function finding(check: string, status: SystemFinding['status']): SystemFinding {
  return { group: 'machine', check, status, what: '', why: null, fix: null, tookMs: 0 };
}

test('errors come before warnings, and what is fine is apart from what was not checked', () => {
  const sorted = sortFindings([
    finding('a', 'ok'),
    finding('b', 'warning'),
    finding('c', 'skipped'),
    finding('d', 'error'),
  ]);
  const names = (findings: SystemFinding[]) => findings.map(({ check }) => check);
  assert.deepEqual(
    [names(sorted.troubles), names(sorted.fine), names(sorted.skipped)],
    [['d', 'b'], ['a'], ['c']],
  );
});

test('the name of a check becomes a title', () => {
  assert.equal(checkTitle('disk-space-data'), 'Disk space data');
});
