/** A directory of its own in which commands are run as other processes. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

const BIN = join(import.meta.dirname, '../../bin/flowhook.js');

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Place {
  directory: string;
  environment: Record<string, string>;
  run(...args: string[]): Promise<Ended>;
  start(...args: string[]): Started;
}

export interface Started {
  process: ChildProcess;
  /** Resolves when standard error has had this; rejects when the command ends without it. */
  says(what: RegExp): Promise<void>;
  ended: Promise<Ended>;
}

/**
 * @param workflows files by their path below the workflows directory
 * @param apply whether to make the database and bring them in
 */
export async function makePlace(
  t: TestContext,
  workflows: Record<string, string>,
  apply = true,
): Promise<Place> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-place-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(workflows)) {
    await mkdir(join(directory, 'workflows', path, '..'), { recursive: true });
    await writeFile(join(directory, 'workflows', path), text);
  }
  const environment = {
    PATH: process.env.PATH ?? '',
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_WORKFLOWS: join(directory, 'workflows'),
    FLOWHOOK_BOOTSTRAP_KEY: 'key-of-the-commands-test',
  };
  const options = { cwd: directory, env: environment };
  const place: Place = {
    directory,
    environment,
    run: (...args) =>
      new Promise((resolve) => {
        const limits = { ...options, timeout: 60_000 };
        execFile(process.execPath, [BIN, ...args], limits, (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
        );
      }),
    start: (...args) => {
      const child = spawn(process.execPath, [BIN, ...args], {
        ...options,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      t.after(() => child.kill('SIGKILL'));
      const said: Ended = { code: null, stdout: '', stderr: '' };
      const listeners = new Set<() => void>();
      for (const stream of ['stdout', 'stderr'] as const) {
        child[stream].setEncoding('utf8').on('data', (text: string) => {
          said[stream] += text;
          for (const listener of listeners) listener();
        });
      }
      const ended = once(child, 'close').then(([code]) => ({ ...said, code: code as number | null }));
      const says = (what: RegExp) =>
        new Promise<void>((resolve, reject) => {
          const look = () => what.test(said.stderr) && resolve();
          listeners.add(look);
          look();
          ended.then(() => reject(new Error(`It ended without ${what}: ${JSON.stringify(said)}`)));
        });
      return { process: child, says, ended };
    },
  };
  if (apply) assert.equal((await place.run('apply')).code, 0);
  return place;
}
