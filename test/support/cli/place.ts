/** A directory for running commands. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Ended, runCommand, type Started, startCommand } from './commands.ts';

export interface Place {
  directory: string;
  environment: Record<string, string>;
  /** Runs a command to its end. Commands run one at a time. */
  run(...args: string[]): Promise<Ended>;
  /** Starts a command in its own process. */
  start(...args: string[]): Started;
}

/**
 * @param workflows files by their path below the workflows directory
 * @param apply whether to create the database and apply the workflows
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
  const place: Place = {
    directory,
    environment,
    run: (...args) => runCommand(args, { directory, environment }),
    start: (...args) => {
      const started = startCommand(args, { directory, environment });
      t.after(() => started.process.kill('SIGKILL'));
      return started;
    },
  };
  if (apply) assert.equal((await place.run('apply')).code, 0);
  return place;
}
