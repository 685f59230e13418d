/**
 * The package as npm installs it, built from this repository: start, memory and processor time when idle, memory after a load,
 * short commands, and size.
 */
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { packService } from '../test/support/cli/installation.ts';
import { type Benchmark, median } from './benchmark.ts';
import { subscribeAll } from './deliver-ours.ts';
import { type Flowhook, processorMsOf, startFlowhook } from './flowhook.ts';
import { hammer, type LoadRequest } from './load.ts';
import { startDurablePostgres } from './postgres.ts';
import { startSink } from './sink.ts';

const run = promisify(execFile);
const REPOSITORY = join(import.meta.dirname, '..');
/** Starts per round. The figure is their median. */
const STARTS = 3;
/** Short commands per round. */
const COMMANDS = 9;
const CONNECTIONS = 64;
const LOAD_MS = 3_000;
/** The service releases the memory of its start after six idle seconds. */
const REST_MS = 8_000;
const REST_AFTER_LOAD_MS = 30_000;
const IDLE_MS = 10_000;
/** Fastify alone does not do that. */
const SHORT_REST_MS = 1_000;
/** Megabytes. */
const MB = 1_024 * 1_024;
const WORKFLOWS = { 'default/people.yaml': 'source: { type: command, command: [echo, "{}"] }\n' };

const benchmark: Benchmark = {
  about:
    'The package as npm installs it. From the start of the process to its first response (the workflow file is ' +
    `unchanged and the compile cache warm). Memory is resident memory: "when idle" ${REST_MS / 1_000} s after the ` +
    `first response, "under load" at the end of ${LOAD_MS / 1_000} s of requests over ${CONNECTIONS} connections ` +
    `(the list of webhooks) and as many seconds of test events, each sent to an endpoint, "after the load" ` +
    `${REST_AFTER_LOAD_MS / 1_000} s later (without --full ${REST_MS / 1_000}). "of files": the part of the idle memory that consists of pages of files, ` +
    'mostly of Node itself, which processes share. "processor time when idle": of all threads, in the ' +
    `${IDLE_MS / 1_000} s before the load. "whole run": from the start of a process to its end. "packages", "package" ` +
    'and "unpacked" are without Node. The limit is a process that imports Fastify and has one route.',
  units: {
    'start to listening': 'ms',
    'start to ready': 'ms',
    'start, processor time': 'ms',
    'resident when idle': 'MB',
    'of files': 'MB',
    'processor time when idle': 'ms/min',
    'under load': 'MB',
    'after the load': 'MB',
    'whole run': 'ms',
    packages: '',
    package: 'MB',
    unpacked: 'MB',
  },
  limit: 'Fastify alone',
  rounds: 2,
  async setUp({ full }) {
    const directory = await mkdtemp(join(tmpdir(), 'flowhook-footprint-'));
    const script = join(directory, 'alone.mjs');
    await writeFile(script, ALONE);
    const { tarball, bytes } = await packService(directory);
    await run('tar', ['-xzf', tarball], { cwd: directory });
    const program = join(directory, 'package/bin/flowhook.js');
    const compiled = { NODE_COMPILE_CACHE: join(directory, 'compiled') };
    const sink = await startSink();
    const afterLoadMs = full ? REST_AFTER_LOAD_MS : REST_MS;
    const start = async (database?: string) => {
      const flowhook = await startFlowhook(WORKFLOWS, compiled, database, program);
      const [webhookId] = await subscribeAll(flowhook, 1, () => `${sink.url}/good/0`);
      return { flowhook, webhookId: webhookId as string };
    };
    const onSqlite = await start();
    const { flowhook } = onSqlite;
    const sizes = { packages: 1, package: bytes.packed / MB, unpacked: bytes.unpacked / MB };
    const theirs = await sizeWithDependencies('fastify');
    const command = (name: string, ...args: string[]) => ({
      name,
      round: () => commandFigures(args, { ...process.env, ...compiled }),
    });
    const contestants = [
      { name: 'Fastify alone', round: async () => ({ ...(await alone(script)), ...theirs }) },
      { name: 'flowhook', round: async () => ({ ...(await ours(onSqlite, afterLoadMs)), ...sizes }) },
    ];
    const stops = [() => flowhook.stop(), async () => sink.stop()];
    if (full) {
      const postgres = await startDurablePostgres();
      const onPostgres = await start(await postgres.makeDatabase('flowhook'));
      stops.push(
        () => onPostgres.flowhook.stop(),
        () => postgres.stop(),
      );
      contestants.push({ name: 'flowhook, PostgreSQL', round: () => ours(onPostgres, afterLoadMs) });
    }
    return {
      contestants: [
        ...contestants,
        command('node -e 0', '-e', '0'),
        command('flowhook --version', program, '--version'),
        command('flowhook jobs list', program, 'jobs', 'list', '--database', flowhook.databaseUrl),
      ],
      async tearDown() {
        for (const stop of stops) await stop();
        await rm(directory, { recursive: true });
      },
    };
  },
};
export default benchmark;

/** The program of the limit: it sends its URL to its parent. */
const ALONE = `
const { default: fastify } = await import(process.argv[2]);
const app = fastify();
app.get('/', async () => ({ webhooks: [] }));
await app.listen({ port: 0, host: '127.0.0.1' });
process.send('http://127.0.0.1:' + app.server.address().port);
`;

async function alone(script: string): Promise<Record<string, number>> {
  const starts: Start[] = [];
  for (let n = 1; ; n += 1) {
    const from = performance.now();
    const env = { ...process.env, NODE_COMPILE_CACHE: join(dirname(script), 'compiled') };
    const child = fork(script, [import.meta.resolve('fastify')], { env });
    const [url] = (await once(child, 'message')) as [string];
    const listeningMs = performance.now() - from;
    await (await fetch(url)).text();
    const pid = child.pid as number;
    starts.push({ listeningMs, readyMs: performance.now() - from, processorMs: await processorMsOf(pid) });
    const figures =
      n < STARTS
        ? {}
        : await memoryFigures({
            pid,
            url,
            loads: [{ method: 'GET', path: '/', headers: {} }],
            restMs: SHORT_REST_MS,
            afterLoadMs: SHORT_REST_MS,
          });
    child.kill();
    await once(child, 'exit');
    if (n === STARTS) return { ...startFigures(starts), ...figures };
  }
}

/** @param service.webhookId receives a test event in each call of the load */
async function ours(
  service: { flowhook: Flowhook; webhookId: string },
  afterLoadMs: number,
): Promise<Record<string, number>> {
  const { flowhook, webhookId } = service;
  const starts: Start[] = [];
  for (let n = 0; n < STARTS; n += 1) starts.push(await flowhook.restart());
  const { pid, url, headers } = flowhook;
  const memory = await memoryFigures({
    pid,
    url,
    loads: [
      { method: 'GET', path: '/v1/integrations/webhooks/list', headers },
      { method: 'POST', path: `/v1/integrations/webhooks/${webhookId}/test`, headers },
    ],
    restMs: REST_MS,
    afterLoadMs,
    idle: true,
  });
  return { ...startFigures(starts), ...memory };
}

/** Runs Node with these arguments several times, each after the other. */
async function commandFigures(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Record<string, number>> {
  const took: number[] = [];
  for (let n = 0; n < COMMANDS; n += 1) {
    const from = performance.now();
    await run(process.execPath, args, { env });
    took.push(performance.now() - from);
  }
  return { 'whole run': median(took) };
}

interface Start {
  listeningMs: number;
  readyMs: number;
  processorMs: number;
}

function startFigures(starts: readonly Start[]): Record<string, number> {
  return {
    'start to listening': median(starts.map(({ listeningMs }) => listeningMs)),
    'start to ready': median(starts.map(({ readyMs }) => readyMs)),
    'start, processor time': median(starts.map(({ processorMs: ms }) => ms)),
  };
}

async function memoryFigures(process: {
  pid: number;
  url: string;
  /** Requests that are repeated, each for `LOAD_MS`. */
  loads: readonly LoadRequest[];
  restMs: number;
  afterLoadMs: number;
  /** Whether to measure the processor time when idle, too. */
  idle?: boolean;
}): Promise<Record<string, number>> {
  const { pid, url, loads, restMs, afterLoadMs } = process;
  await rest(restMs);
  const idle = await resident(pid);
  const idleTime = process.idle === true ? { 'processor time when idle': await idleMsPerMinute(pid) } : {};
  for (const load of loads) {
    await hammer({ url, connections: CONNECTIONS, forMs: LOAD_MS, request: () => load });
  }
  const loaded = await resident(pid);
  await rest(afterLoadMs);
  return {
    'resident when idle': idle.all,
    'of files': idle.ofFiles,
    ...idleTime,
    'under load': loaded.all,
    'after the load': (await resident(pid)).all,
  };
}

/** Processor time of all threads of an idle process, in milliseconds per minute. */
async function idleMsPerMinute(pid: number): Promise<number> {
  const before = await nanosecondsOf(pid);
  await rest(IDLE_MS);
  return (((await nanosecondsOf(pid)) - before) / 1e6) * (60_000 / IDLE_MS);
}

/** On Linux (`/proc/…/schedstat`): processor time of all threads. `/proc/…/stat` counts only hundredths of a second. */
async function nanosecondsOf(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const read = (thread: string) => readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').catch(() => '0');
  return (await Promise.all(threads.map(read))).reduce((sum, text) => sum + Number(text.split(' ')[0]), 0);
}

/** In MB, on Linux (proc(5), status). */
async function resident(pid: number): Promise<{ all: number; ofFiles: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const mb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1_024;
  return { all: mb('VmRSS'), ofFiles: mb('RssFile') };
}

function rest(ms: number): Promise<void> {
  return new Promise((later) => setTimeout(later, ms));
}

interface Package {
  dependencies?: Record<string, string>;
}

/** The number of packages that npm installs with this one, and their size on disk. */
async function sizeWithDependencies(top: string): Promise<Record<string, number>> {
  const seen = new Set<string>();
  const waiting = [{ name: top, from: REPOSITORY }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const directory = installed(next.name, next.from);
    if (directory === undefined || seen.has(directory)) continue;
    seen.add(directory);
    const { dependencies: more = {} } = JSON.parse(
      await readFile(join(directory, 'package.json'), 'utf8'),
    ) as Package;
    waiting.push(...Object.keys(more).map((name) => ({ name, from: directory })));
  }
  let bytes = 0;
  for (const directory of seen) bytes += await size(directory);
  return { packages: seen.size, unpacked: bytes / MB };
}

/** Where Node finds a package imported from this directory. Undefined if it is not installed. */
function installed(name: string, from: string): string | undefined {
  for (let place = from; place !== join(place, '..'); place = join(place, '..')) {
    const found = join(place, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return found;
  }
  return undefined;
}

/** Bytes of the files of a package, without nested packages. */
async function size(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) bytes += entry.name === 'node_modules' ? 0 : await size(path);
    else bytes += (await stat(path)).size;
  }
  return bytes;
}
