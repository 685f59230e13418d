/** Starts sources from a few lines. */
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { parseModuleDefinition } from '../../../src/definitions/definition.ts';
import type { Definition, Source } from '../../../src/model/workflow.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import type { Run, RunEnd, RunInput } from '../../../src/sources/run.ts';
import { startRun } from '../../../src/sources/start.ts';

/** A directory with these files, removed after the test. */
export async function directoryOf(t: TestContext, files: Record<string, string>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-test-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
  return directory;
}

/** The common input of runs in tests. */
export const TRIAL: Omit<RunInput, 'definition'> = {
  workflowsDirectory: tmpdir(),
  team: 'acme',
  workflowId: 'one',
  jobId: 'job_trial',
  attempt: 1,
  state: null,
  runAs: undefined,
  secrets: new Map(),
  environment: new Map([['PATH', '/usr/bin:/bin']]),
  log: silentLogger,
  onLog() {},
  onProgress() {},
};

/** Starts a command (`command`) or the module `acme/one.mts`, which is killed after the test. */
export async function start(
  t: TestContext,
  input: Omit<Partial<RunInput>, 'definition'> & {
    command?: string[];
    source?: Partial<Extract<Source, { type: 'command' }>>;
    limits?: Partial<Definition['limits']>;
    key?: string[];
    mode?: Definition['mode'];
  },
): Promise<Run> {
  const { command, source: settings, limits, key = [], mode = 'replace', ...rest } = input;
  const parsed = parseModuleDefinition({}, { file: 'acme/one.mts', line: null });
  if (!('definition' in parsed)) throw new Error('The defaults are a definition');
  const source: Source =
    command === undefined
      ? parsed.definition.source
      : {
          type: 'command',
          command,
          protocol: 'ndjson',
          streams: null,
          env: {},
          config: null,
          directory: '.',
          ...settings,
        };
  const run = await startRun({
    ...TRIAL,
    definition: {
      ...parsed.definition,
      source,
      key,
      mode,
      limits: { ...parsed.definition.limits, ...limits },
    },
    ...rest,
  });
  t.after(async () => {
    run.kill();
    await run.end;
  });
  return run;
}

/** Reads a run to its end. */
export async function finish(run: Run): Promise<{ lines: string[]; end: RunEnd }> {
  const lines: string[] = [];
  for await (const batch of run.batches) lines.push(...batch);
  return { lines, end: await run.end };
}

/** Whether a process runs and is not a zombie. */
export function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !/^\) [ZX]/.test(stat.slice(stat.lastIndexOf(')')));
  } catch {
    return false;
  }
}

/** The pid of the process that started a process. */
export function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}
