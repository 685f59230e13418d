/** `flowhook jobs watch`: follows one job until it ends, or prints every change of all jobs. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import { shownJob } from '../resources/job.ts';
import { toIso } from '../std/clock.ts';
import type { Store } from '../store/store.ts';
import { UsageError } from './exit.ts';
import { findJob, findTeams } from './find.ts';
import { followJob } from './follow-job.ts';
import { oneLine, resultWords, stateWords } from './job-words.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { orRemote } from './remote.ts';
import { followAt } from './remote-jobs.ts';
import { report } from './report-job.ts';
import { screen } from './say.ts';
import type { Options } from './settings.ts';
import { untilInterrupted } from './until-interrupted.ts';

const LOOK_MS = 250;
/** How many of the newest jobs of each team are watched. */
const WATCHED = 200;

export function addWatch(jobs: Command): void {
  const watch = jobs
    .command('watch')
    .description('follow a job to its end; without one, print every change of every job until Ctrl-C')
    .argument('[job]', 'its id')
    .option('--team <slug>', 'only jobs of this team');
  const local = (id: string | undefined, options: Options) =>
    withStore(options, { make: false }, async (store) => {
      const interrupted = untilInterrupted({ isEnd: id === undefined });
      try {
        if (id === undefined) return await watchAll(store, options, interrupted.signal);
        const job = await findJob(store, id);
        const seen = await followJob(job, { store, screen, signal: interrupted.signal });
        report(seen, options);
      } finally {
        interrupted.clear();
      }
    });
  orRemote(addStoreOptions(watch), local, async (server, id: string | undefined, options: Options) => {
    if (id === undefined) throw new UsageError('Of a server one job is watched: name it');
    await followAt(server, id, options);
  });
}

async function watchAll(store: Store, options: Options, signal: AbortSignal): Promise<void> {
  const teams = await findTeams(store, options.team);
  let known: Map<string, string> | undefined;
  while (!signal.aborted) {
    const seen = new Map<string, string>();
    for (const { id: teamId, slug } of teams) {
      for (const job of (await store.jobs.list({ teamId, limit: WATCHED })).reverse()) {
        const state = stateWords(job);
        seen.set(job.id, state);
        // The first look prints only unfinished jobs: the others have not changed.
        if (known === undefined ? job.finishedAt !== null : known.get(job.id) === state) continue;
        const now = store.now();
        const line = [
          toIso(now),
          job.id,
          `${slug}/${job.workflowId}`,
          state,
          oneLine(resultWords(job, now), 120),
        ];
        print(options, { team: slug, ...shownJob(job) }, [line.join('  ').trimEnd()]);
      }
    }
    known = seen;
    await pause(LOOK_MS, undefined, { signal }).catch(() => {});
  }
}
