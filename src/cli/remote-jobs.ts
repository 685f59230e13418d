/** `flowhook jobs` and `flowhook run` against a server. */
import type { Job as ClientJob, Flowhook } from 'flowhook-client';
import type { Job } from '../model/job.ts';
import { attemptFrom, jobFilterFrom } from './job-flags.ts';
import { cellsOf, JOB_HEADS, jobLines } from './job-words.ts';
import { print, toOutput } from './output.ts';
import { withoutTeam } from './remote.ts';
import { isWaitedFor, report, timeoutFrom } from './report-job.ts';
import { say, warn } from './say.ts';
import type { Options } from './settings.ts';
import { table } from './table.ts';
import { untilInterrupted } from './until-interrupted.ts';

export async function listJobsAt(server: Flowhook, options: Options): Promise<void> {
  const { team } = await server.me();
  const { limit, states: state, origin } = jobFilterFrom(options);
  const workflowId = options.workflow as string | undefined;
  const jobs = await server.jobs.list({ workflowId, state, origin }).take(limit);
  print(
    options,
    jobs.map((job) => ({ team: team.slug, ...job })),
    table(
      jobs.map((job) => cellsOf(storedJob(job), team.slug, Date.now())),
      process.stdout.columns,
      JOB_HEADS,
    ),
  );
  if (jobs.length === 0 && options.json !== true) say('No jobs found. `flowhook run WORKFLOW` queues one');
}

export async function showJobAt(server: Flowhook, id: string, options: Options): Promise<void> {
  const { team } = await server.me();
  const job = await server.jobs.get(id);
  print(options, { team: team.slug, ...job }, jobLines(storedJob(job), team.slug, Date.now()));
}

export async function cancelJobAt(server: Flowhook, id: string, options: Options): Promise<void> {
  const { message, job } = await server.jobs.cancel(id);
  print(options, job, [`${job.state === 'canceled' ? 'canceled' : 'canceling'} ${id}`]);
  say(message);
}

export async function rerunJobAt(server: Flowhook, id: string, options: Options): Promise<void> {
  const { job } = await server.jobs.rerun(id);
  print(options, job, [job.id]);
  say(`Queued; \`flowhook jobs watch ${job.id}\` follows it`);
}

export async function runJobNowAt(server: Flowhook, id: string, options: Options): Promise<void> {
  print(options, (await server.jobs.runNow(id)).job, [`due now ${id}`]);
}

export async function runAt(server: Flowhook, workflow: string, options: Options): Promise<void> {
  timeoutFrom(options);
  const { jobId } = await server.workflows.queue(withoutTeam(workflow));
  if (isWaitedFor(options)) return followAt(server, jobId, options);
  print(options, await server.jobs.get(jobId), [jobId]);
  say(`Queued; \`flowhook jobs watch ${jobId}\` follows it`);
}

/** Waits until a job has ended, printing its log if asked to. Ctrl-C and --timeout end the waiting, not the job. */
export async function followAt(server: Flowhook, id: string, options: Options): Promise<void> {
  const interrupted = untilInterrupted({ withinMs: timeoutFrom(options) });
  const { signal } = interrupted;
  try {
    say(`Following ${id}`);
    if (options.logs === true) {
      for await (const line of server.jobs.followLogs(id, { signal })) {
        warn(`${line.time} ${line.level.padEnd(5)} ${line.text}`);
      }
    }
    report(storedJob(await server.jobs.wait(id, { signal })), options);
  } catch (error) {
    if (!signal.aborted) throw error;
    report(storedJob(await server.jobs.get(id)), options);
  } finally {
    interrupted.clear();
  }
}

export async function jobLogsAt(server: Flowhook, id: string, options: Options): Promise<void> {
  const attempt = attemptFrom(options);
  const interrupted = untilInterrupted();
  async function* lines() {
    if (options.follow === true) return yield* server.jobs.followLogs(id, { signal: interrupted.signal });
    for (let after: number | undefined = 0; after !== undefined; ) {
      const page = await server.jobs.logs(id, { after, ...(attempt === undefined ? {} : { attempt }) });
      for (const line of page.lines) yield { ...line, attempt: page.attempt };
      after = page.lines.length === 0 ? undefined : (page.next ?? undefined);
    }
  }
  async function* written() {
    for await (const { attempt: of, ...line } of lines()) {
      const text =
        options.json === true
          ? JSON.stringify({ attempt: of, ...line })
          : `${line.time} ${line.level.padEnd(5)} ${line.text.replaceAll('\n', '\n  ')}`;
      yield Buffer.from(`${text}\n`);
    }
  }
  try {
    await toOutput(written());
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
  } finally {
    interrupted.clear();
  }
}

/** A job of the client as one of the database, for `job-words.ts`. Fields that a server does not send get defaults. */
export function storedJob(job: ClientJob): Job {
  const ms = (time: string | null) => (time === null ? null : Date.parse(time));
  return {
    ...job,
    teamId: '',
    slot: 0,
    failures: 0,
    crashes: 0,
    runAt: ms(job.nextAttemptAt) ?? 0,
    cancelRequestedAt: ms(job.cancelRequestedAt),
    createdAt: Date.parse(job.queuedAt),
    startedAt: ms(job.startedAt),
    finishedAt: ms(job.finishedAt),
    trace: null,
  };
}
