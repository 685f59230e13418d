/** Limits for definitions made over the API. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Definition, Workflow } from '../model/workflow.ts';
import { aboveCeilings, type Ceilings, withinCeilings } from './api-bounds.ts';
import { parseYamlDefinition } from './definition.ts';

const CEILINGS: Ceilings = {
  timeoutMs: 3_600_000,
  memoryBytes: 1_000_000_000,
  outputBytes: 3_000_000_000,
  records: 6_000_000,
  retries: 5,
};

function definitionOf(more: string): Definition {
  const parsed = parseYamlDefinition(`source: { type: http, url: "https://a.test/" }\n${more}`, {
    file: 'acme/a.yaml',
  });
  assert.ok('definition' in parsed);
  return parsed.definition;
}

const GREEDY = definitionOf(
  'limits: { timeout: 168h, memory: 900GB, output: 900TB, records: 1000000000 }\nretries: { max: 100 }',
);

test('a definition within the ceilings has no mistakes, and neither have the defaults', () => {
  assert.deepEqual(aboveCeilings(definitionOf(''), CEILINGS), []);
});

test('names each setting above its ceiling, with the ceiling and the setting that raises it', () => {
  const mistakes = aboveCeilings(GREEDY, CEILINGS);
  assert.equal(mistakes.length, 5);
  assert.match(mistakes[0] ?? '', /`limits\.timeout` is 7 days.*at most 1 h.*FLOWHOOK_MAX_API_TIMEOUT/);
  assert.match(mistakes[4] ?? '', /`retries\.max` is 100.*at most 5.*FLOWHOOK_MAX_API_RETRIES/);
});

test('the ceilings apply to stored definitions made over the API, and not to files', () => {
  const workflow = { definition: GREEDY, definitionHash: 'api:1' } as Workflow;
  const { limits, retries } = withinCeilings(workflow, CEILINGS).definition;
  const { retries: most, ...rest } = CEILINGS;
  assert.deepEqual([limits, retries.max], [rest, most]);
  const file = { ...workflow, definitionHash: '1' };
  assert.equal(withinCeilings(file, CEILINGS), file);
});
