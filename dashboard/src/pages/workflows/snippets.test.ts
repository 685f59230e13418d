/** Code samples for a workflow. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { LANGUAGES, snippets } from './snippets.ts';

const subject = { workflowId: 'people\'s $(id) "x"', url: 'http://127.0.0.1:8080', isPush: false };

test('reads, runs and subscribes in every language', () => {
  for (const { value } of LANGUAGES) {
    for (const isPush of [false, true]) {
      const all = snippets(value, { ...subject, workflowId: 'people', isPush });
      assert.equal(all.length, 3, value);
      const code = all.map((each) => each.code).join('\n');
      assert.match(code, /people/);
      assert.match(code, isPush ? /push/i : /queue/);
      assert.match(code, /subscribe/);
      if (value === 'client') assert.match(code, /from 'flowhook-client'/);
    }
  }
});

test('quotes any workflow id for the shell', () => {
  for (const { code } of snippets('curl', subject)) {
    // A fake curl that prints its arguments.
    const script = `curl() { printf '%s\\n' "$@"; }\n${code}`;
    const printed = execFileSync('sh', ['-c', script], { encoding: 'utf8' });
    assert.ok(
      printed.includes(`/v1/workflows/${encodeURIComponent(subject.workflowId)}/`) ||
        printed.includes(JSON.stringify(subject.workflowId)),
      printed,
    );
  }
});
