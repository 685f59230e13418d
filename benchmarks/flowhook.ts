/**
 * Starts the service to be measured, in its own process and directory, with the default durability. It uses PostgreSQL if
 * it gets a database, or with `FLOWHOOK_TEST_STORE=postgres` and a durable server in `FLOWHOOK_TEST_DATABASE`, where each
 * service has its own database.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startServerProcess } from '../test/support/server-process.ts';
import { type TestDatabase, testDatabase } from '../test/support/test-database.ts';

const KEY = 'key-of-the-benchmarks';

/** The fields of a job that benchmarks use. */
export interface EndedJob {
  state: string;
  records: Record<string, number>;
  error?: string;
  queuedAt: string;
  startedAt: string;
}

export interface Flowhook {
  /** Changes with a restart. */
  readonly url: string;
  readonly pid: number;
  /** Headers with the API key. */
  headers: Record<string, string>;
  directory: string;
  /** Its database, which benchmarks fill directly. */
  databaseUrl: string;
  /** Resolves when this workflow's file has been applied. With many files that takes longer than the start. */
  applied(workflowId: string): Promise<void>;
  /** Queues a job, waits for its end and returns it. */
  runToItsEnd(workflowId: string): Promise<EndedJob>;
  /** Queues a job that never ends, and waits until it runs. */
  hold(workflowId: string): Promise<void>;
  /** Resident memory of the server in MB: current, and the maximum since the last `resetPeak`. */
  memory(): Promise<{ nowMb: number; peakMb: number }>;
  resetPeak(): Promise<void>;
  /** Processor time of all threads of the server so far, in milliseconds. */
  processorMs(): Promise<number>;
  /** Deletes cached bodies, so that the next read uses the database. */
  forgetBodies(): Promise<void>;
  /**
   * Restarts the server on the same data. Returns the milliseconds from the start of the process until the server was
   * listening and until it was ready, and the processor time used until then.
   */
  restart(): Promise<{ listeningMs: number; readyMs: number; processorMs: number }>;
  stop(): Promise<void>;
}

/**
 * @param workflows files by their path, such as `default/people.yaml`
 * @param settings additional environment variables
 * @param database the URL of an empty PostgreSQL database (see `./postgres.ts`). Default: SQLite
 * @param program the path of `flowhook.js` of another installation. Default: the repository's
 */
export async function startFlowhook(
  workflows: Record<string, string>,
  settings: Record<string, string> = {},
  database?: string,
  program?: string,
): Promise<Flowhook> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-bench-'));
  for (const [path, text] of Object.entries(workflows)) {
    await mkdir(dirname(join(directory, 'workflows', path)), { recursive: true });
    await writeFile(join(directory, 'workflows', path), text);
  }
  const {
    url: databaseUrl,
    settings: ofDatabase,
    drop,
  } = database === undefined ? await testDatabase(directory) : onPostgres(database);
  const start = () =>
    startServerProcess(
      {
        FLOWHOOK_DATA: join(directory, 'data'),
        FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
        FLOWHOOK_BOOTSTRAP_KEY: KEY,
        FLOWHOOK_LOG_LEVEL: 'warn',
        ...ofDatabase,
        ...settings,
      },
      program === undefined ? {} : { program },
    );
  let server = await start();
  const headers = { 'x-api-key': KEY };
  const pid = () => server.process.pid as number;
  const proc = (name: string) => `/proc/${pid()}/${name}`;
  async function queueUntil(workflowId: string, states: RegExp): Promise<EndedJob> {
    const queued = await fetch(`${server.url}/v1/workflows/${workflowId}/queue`, { method: 'POST', headers });
    if (queued.status !== 200) throw new Error(await queued.text());
    const path = `/v1/jobs/${queued.headers.get('x-job-id')}`;
    for (;;) {
      const job = (await (await fetch(server.url + path, { headers })).json()) as EndedJob;
      if (states.test(job.state)) return job;
      await new Promise((later) => setTimeout(later, 50));
    }
  }
  return {
    get url() {
      return server.url;
    },
    get pid() {
      return pid();
    },
    headers,
    directory,
    databaseUrl,
    async applied(workflowId) {
      for (;;) {
        const response = await fetch(`${server.url}/v1/workflows/${workflowId}`, { headers });
        await response.body?.cancel();
        if (response.status === 200) return;
        await new Promise((later) => setTimeout(later, 50));
      }
    },
    runToItsEnd: (workflowId) => queueUntil(workflowId, /^(finished|failed|canceled)$/),
    async hold(workflowId) {
      await queueUntil(workflowId, /^running$/);
    },
    async memory() {
      const status = await readFile(proc('status'), 'utf8');
      const mb = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1_024;
      return { nowMb: mb('VmRSS'), peakMb: mb('VmHWM') };
    },
    // Linux: writing 5 resets the peak to the current value (proc(5), clear_refs).
    resetPeak: () => writeFile(proc('clear_refs'), '5'),
    processorMs: () => processorMsOf(pid()),
    async forgetBodies() {
      const data = join(directory, 'data');
      for (const name of await readdir(data)) {
        if (!name.startsWith('representations')) continue;
        // The server may be writing a body there.
        await rm(join(data, name), { recursive: true, maxRetries: 10 });
      }
    },
    async restart() {
      await server.stop();
      const from = performance.now();
      server = await start();
      const listeningMs = performance.now() - from;
      const response = await fetch(`${server.url}/readyz`);
      await response.body?.cancel();
      if (response.status !== 200)
        throw new Error(`/readyz returned ${response.status} although the server is listening`);
      return { listeningMs, readyMs: performance.now() - from, processorMs: await processorMsOf(pid()) };
    },
    async stop() {
      await server.stop();
      await drop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The caller deletes the server with all its databases. */
function onPostgres(url: string): Pick<TestDatabase, 'url' | 'settings' | 'drop'> {
  const settings = { FLOWHOOK_DATABASE: url, FLOWHOOK_ENCRYPTION_KEY: 'ab'.repeat(32) };
  return { url, settings, drop: async () => {} };
}

/** Processor time of all threads of a process so far, in milliseconds. */
export async function processorMsOf(pid: number): Promise<number> {
  // Linux counts hundredths of a second here (proc(5)). The name before that may contain spaces.
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
