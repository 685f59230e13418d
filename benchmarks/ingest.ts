/** Ingesting records, compared with reading and parsing the same bytes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Benchmark, Contestant } from './benchmark.ts';
import { type Flowhook, startFlowhook } from './flowhook.ts';
import { people } from './people.ts';
import { startDurablePostgres } from './postgres.ts';

const USUAL = 200_000;
const FULL = 1_000_000;
const COMMAND = 'people';
const PUSH = 'pushed';

const benchmark: Benchmark = {
  about:
    `${USUAL.toLocaleString('en')} records of about 95 bytes as JSON lines (${FULL.toLocaleString('en')} with ` +
    '--full), printed by a command or pushed over HTTP. "first" publishes all of them durably; "unchanged" ' +
    'finds that all of them are already published. Each round uses a new database. The limit runs the same ' +
    'command, and only reads and parses its lines.',
  units: { first: '/s', unchanged: '/s', 'peak memory': 'MB' },
  limit: 'read and parse',
  async setUp({ full }) {
    const records = full ? FULL : USUAL;
    const directory = await mkdtemp(join(tmpdir(), 'flowhook-bench-'));
    const program = join(directory, 'people.mjs');
    const lines = join(directory, 'people.ndjson');
    await writeFile(program, people.program(records));
    const written = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
    await writeFile(lines, written.stdout);

    const contestants: Contestant[] = [
      {
        name: 'read and parse',
        async round() {
          const rate = await rateOf(records, () => readAndParse(program, records));
          return { first: rate, unchanged: rate };
        },
      },
    ];
    const ours = (name: string, database?: () => Promise<string>): Contestant[] => {
      const way = (how: string, run: (flowhook: Flowhook) => Promise<void>): Contestant => ({
        name: `${name}, ${how}`,
        async round() {
          const flowhook = await startFlowhook(
            {
              [`default/${COMMAND}.yaml`]: people.definition,
              'default/people.mjs': people.program(records),
              [`default/${PUSH}.yaml`]: 'source: { type: push }\n',
            },
            {},
            await database?.(),
          );
          try {
            const first = await rateOf(records, () => run(flowhook));
            const unchanged = await rateOf(records, () => run(flowhook));
            return { first, unchanged, 'peak memory': (await flowhook.memory()).peakMb };
          } finally {
            await flowhook.stop();
          }
        },
      });
      return [way('command', queued), way('push', (flowhook) => pushed(flowhook, lines))];
    };
    contestants.push(...ours('flowhook'));
    const skipped: string[] = [];
    const postgres = full ? await startDurablePostgres() : undefined;
    let databases = 0;
    if (postgres === undefined) skipped.push('1,000,000 records and PostgreSQL, which --full adds.');
    else
      contestants.push(
        ...ours('flowhook on PostgreSQL', () => postgres.makeDatabase(`ingest${++databases}`)),
      );
    return {
      contestants,
      skipped,
      async tearDown() {
        await postgres?.stop();
        await rm(directory, { recursive: true });
      },
    };
  },
};
export default benchmark;

/** Records per second. */
async function rateOf(records: number, act: () => Promise<void>): Promise<number> {
  const from = performance.now();
  await act();
  return records / ((performance.now() - from) / 1_000);
}

async function readAndParse(program: string, records: number): Promise<void> {
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
  child.stdout.setEncoding('utf8');
  let rest = '';
  let parsed = 0;
  for await (const chunk of child.stdout) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (typeof JSON.parse(line).id === 'string') parsed += 1;
  }
  if (parsed !== records) throw new Error(`${parsed} records were parsed, not ${records}`);
}

async function queued(flowhook: Flowhook): Promise<void> {
  const job = await flowhook.runToItsEnd(COMMAND);
  if (job.state !== 'finished') throw new Error(job.error);
}

async function pushed({ url, headers }: Flowhook, path: string): Promise<void> {
  const call = request(`${url}/v1/workflows/${PUSH}/push`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/x-ndjson' },
  });
  const [[response]] = (await Promise.all([
    once(call, 'response'),
    pipeline(createReadStream(path, { highWaterMark: 262_144 }), call),
  ])) as [[IncomingMessage], unknown];
  let text = '';
  for await (const part of response) text += part;
  if (response.statusCode !== 200) throw new Error(text);
}
