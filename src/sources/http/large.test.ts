/** Large responses are streamed: 50 MB, which would not fit into the memory limit if read whole, or 1 GB in the long form. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type TestContext, test } from 'node:test';
import { definitionOf, site } from '../../../test/support/jobs/source-site.ts';
import { TRIAL } from '../../../test/support/jobs/sources.ts';
import { parseAllowNetworks } from '../../net/address-policy.ts';
import { startRun } from '../start.ts';

const ROW = { id: 1, name: 'Ada Lovelace', email: 'ada@example.com', note: 'x'.repeat(1_000) };
const MEGABYTES = Number(process.env.LARGE_MEGABYTES ?? 50);
const ROWS = MEGABYTES * 1_000;

/** Writes rows as fast as they are read. */
function pour(response: ServerResponse, start: string, row: string, end: string): Promise<void> {
  const block = row.repeat(1_000);
  function* blocks() {
    yield start;
    for (let rows = 0; rows < ROWS; rows += 1_000) yield block;
    if (end !== '') yield end;
  }
  return pipeline(Readable.from(blocks()), response);
}

async function count(t: TestContext, url: string, settings: { source?: object; fields?: object }) {
  const run = await startRun({
    ...TRIAL,
    fetchPolicy: parseAllowNetworks('loopback'),
    definition: definitionOf({
      source: { type: 'http', url, ...settings.source },
      limits: { memory: '192MB' },
      ...(settings.fields === undefined ? {} : { fields: settings.fields }),
    }),
  });
  t.after(() => run.kill());
  let records = 0;
  for await (const batch of run.batches) records += batch.length;
  return { records, end: await run.end };
}

const json = JSON.stringify(ROW);
const csv = `${Object.values(ROW).join(',')}\n`;
const FIELDS = { id: '$.id', email: '$.email' };
const CASES: [
  what: string,
  type: string,
  write: (response: ServerResponse) => Promise<void>,
  settings: object,
][] = [
  [
    'a JSON list',
    'application/json',
    (r) => pour(r, '{"data":[{}', `,${json}`, ']}'),
    { source: { records: '$.data' }, fields: FIELDS },
  ],
  ['a JSON list as it is', 'application/json', (r) => pour(r, '[{}', `,${json}`, ']'), {}],
  ['NDJSON', 'application/x-ndjson', (r) => pour(r, '{}\n', `${json}\n`, ''), { fields: FIELDS }],
  ['CSV', 'text/csv', (r) => pour(r, `${Object.keys(ROW).join(',')}\n${csv}`, csv, ''), { fields: FIELDS }],
];

for (const [what, type, write, settings] of CASES) {
  test(`${what} of ${MEGABYTES} MB is read within 192 MB`, async (t) => {
    const { url } = await site(t, (_request, response) => {
      response.setHeader('content-type', type);
      write(response).catch(() => response.destroy());
    });
    const startedAt = performance.now();
    const { records, end } = await count(t, url, settings);
    assert.deepEqual(end, { ok: true, state: '{}', unchanged: false });
    assert.equal(records, ROWS + 1);
    t.diagnostic(`${Math.round(records / (performance.now() - startedAt))} records/ms`);
  });
}
