/** The cost of extracting records from JSON and HTML with an HTTP source, compared with only parsing the same bytes. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parse } from 'parse5';
import { stringify } from 'yaml';
import { parseYamlDefinition } from '../src/definitions/definition.ts';
import { parseAllowNetworks } from '../src/net/address-policy.ts';
import { silentLogger } from '../src/observe/log.ts';
import { startRun } from '../src/sources/start.ts';
import type { Benchmark, Contestant } from './benchmark.ts';
import { startFlowhook } from './flowhook.ts';

const RECORDS = 100_000;
const ROWS = 10_000;
/** Each round uses another workflow, so that all records are new. */
const MOST_ROUNDS = 20;

const JSON_FIELDS = { id: '$.id', name: '{{$.first}} {{$.last}}', email: '$.contact.email' };
const HTML_FIELDS = {
  id: { from: 'a@href', replace: ['^.*/', ''] },
  name: 'td a',
  born: { from: 'td:nth-child(2)', date: 'DD.MM.YYYY' },
  salary: { from: 'td:nth-child(3)', number: ',' },
};

/** The sources by the names of their figures. */
const sources = (url: string): Record<string, { count: number; settings: object }> => ({
  'JSON, plain path': {
    count: RECORDS,
    settings: {
      source: { type: 'http', url: `${url}/people.json`, records: '$.data.items' },
      fields: JSON_FIELDS,
    },
  },
  'JSON, filter path, read whole': {
    count: RECORDS,
    settings: {
      source: { type: 'http', url: `${url}/people.json`, records: '$.data.items[?@.active == true]' },
      fields: JSON_FIELDS,
    },
  },
  HTML: {
    count: ROWS,
    settings: {
      source: {
        type: 'http',
        url: `${url}/people.html`,
        parse: 'html',
        records: 'tr.person',
        robots: 'ignore',
      },
      fields: HTML_FIELDS,
    },
  },
});

const benchmark: Benchmark = {
  about:
    `${RECORDS.toLocaleString('en')} records of a JSON response of 60 MB, and ${ROWS.toLocaleString('en')} rows of an HTML page, from the same machine. ` +
    '"bare parse": fetched and parsed only. "source": a child process, up to its lines, with its peak memory. "published": a job, up to the published version.',
  units: { 'records/s': '/s', 'peak MB': 'MB' },
  rounds: 5,
  async setUp() {
    const pages: Record<string, [type: string, body: Buffer]> = {
      '/people.json': ['application/json', Buffer.from(peopleJson())],
      '/people.html': ['text/html; charset=utf-8', Buffer.from(peopleHtml())],
    };
    const server = createServer((request, response) => {
      const [type, body] = pages[request.url ?? ''] ?? ['text/plain', Buffer.from('')];
      response.writeHead(200, { 'content-type': type, 'content-length': body.length }).end(body);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const all = Object.entries(sources(url));
    const flowhook = await startFlowhook(
      Object.fromEntries(
        all.flatMap(([, { settings }], at) =>
          Array.from({ length: MOST_ROUNDS }, (_, round) => [
            `default/s${at}-${round}.yaml`,
            stringify(settings),
          ]),
        ),
      ),
      { FLOWHOOK_ALLOW_NETWORKS: 'loopback' },
    );
    const text = async (path: string) => (await fetch(url + path)).text();
    const contestants: Contestant[] = [
      bare('JSON, bare parse', RECORDS, async () => JSON.parse(await text('/people.json'))),
      bare('HTML, bare parse', ROWS, async () => parse(await text('/people.html'))),
      ...all.flatMap(([name, { count, settings }], at) => {
        let rounds = 0;
        return [
          { name: `${name}: source`, round: () => extract(settings, count) },
          {
            name: `${name}: published`,
            async round() {
              const startedAt = performance.now();
              const { state, error } = await flowhook.runToItsEnd(`s${at}-${rounds++ % MOST_ROUNDS}`);
              if (state !== 'finished') throw new Error(`${name}: ${error}`);
              return { 'records/s': perSecond(count, startedAt) };
            },
          },
        ];
      }),
    ];
    return {
      contestants,
      async tearDown() {
        await flowhook.stop();
        server.closeAllConnections();
        server.close();
      },
    };
  },
};
export default benchmark;

function bare(name: string, count: number, parseAll: () => Promise<unknown>): Contestant {
  return {
    name,
    async round() {
      const startedAt = performance.now();
      await parseAll();
      return { 'records/s': perSecond(count, startedAt) };
    },
  };
}

/** Runs a source as a job would, and counts its lines. */
async function extract(settings: object, count: number): Promise<Record<string, number>> {
  const parsed = parseYamlDefinition(stringify(settings), { file: 'default/one.yaml' });
  if ('mistakes' in parsed) throw new Error(parsed.mistakes.map(({ message }) => message).join('\n'));
  const startedAt = performance.now();
  const run = await startRun({
    workflowsDirectory: '/',
    definition: parsed.definition,
    team: 'default',
    workflowId: 'one',
    jobId: 'job_bench',
    attempt: 1,
    state: null,
    runAs: undefined,
    secrets: new Map(),
    environment: new Map(Object.entries(process.env) as [string, string][]),
    log: silentLogger,
    fetchPolicy: parseAllowNetworks('loopback'),
    onLog() {},
    onProgress() {},
  });
  let records = 0;
  let peakMb = 0;
  for await (const batch of run.batches) {
    records += batch.length;
    peakMb = Math.max(peakMb, await peakOfGroup(run.process.pid));
  }
  const end = await run.end;
  if (!end.ok || records !== count) throw new Error(end.ok ? `${records} records of ${count}` : end.error);
  return { 'records/s': perSecond(count, startedAt), 'peak MB': peakMb };
}

/** The peak memory of the largest process of a group, in MB. The process that reads is by far the largest. */
async function peakOfGroup(groupId: number): Promise<number> {
  const peaks = (await readdir('/proc'))
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
        if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]) !== groupId) return 0;
        return (
          Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) / 1_024
        );
      } catch {
        // The process has ended.
        return 0;
      }
    });
  return Math.max(0, ...peaks);
}

function perSecond(count: number, startedAt: number): number {
  return (count * 1_000) / (performance.now() - startedAt);
}

/** Records of 600 bytes. */
function peopleJson(): string {
  const note = 'x'.repeat(418);
  const people = Array.from({ length: RECORDS }, (_, at) =>
    JSON.stringify({
      id: at,
      first: 'Ada',
      last: `Lovelace ${at}`,
      active: true,
      contact: { email: `ada${at}@example.com`, phone: null },
      tags: ['a', 'b'],
      createdAt: '2026-01-31T10:00:00Z',
      note,
    }),
  );
  return `{"meta":{"total":${RECORDS}},"data":{"items":[${people.join(',')}]}}`;
}

function peopleHtml(): string {
  const rows = Array.from(
    { length: ROWS },
    (_, at) =>
      `<tr class="person"><td><a href="/people/${at}">Ada Lovelace ${at}</a></td><td>10.12.1815</td><td>1.${String(at % 1_000).padStart(3, '0')},50 €</td></tr>`,
  );
  return `<!doctype html><title>People</title><table><tbody>${rows.join('\n')}</tbody></table>`;
}
