/** Produces the lines of an attempt by running the source of its workflow in a child process. */
import type { Workflow } from '../model/workflow.ts';
import type { RunInput } from '../sources/run.ts';
import { createMask } from '../sources/secrets.ts';
import { sourceName, startRun } from '../sources/start.ts';
import type { ClaimedJob } from '../store/operations/attempts.ts';
import { type AttemptDeps, type Producer, RunFailure } from './attempt.ts';

/** Dependencies for running sources; see `RunInput`. */
export interface SourceDeps
  extends Pick<RunInput, 'workflowsDirectory' | 'environment' | 'fetchPolicy' | 'killGraceMs'> {
  /** Returns the secrets that a workflow may use. `team` is the slug of the team. */
  secrets(team: string, workflow: Workflow): Promise<ReadonlyMap<string, string>>;
  /** The system user that sources run as (default: the service's own user). */
  runAs?: RunInput['runAs'];
}

export function sourceProducer(deps: SourceDeps & AttemptDeps, claimed: ClaimedJob): Producer {
  const { job, workflow } = claimed;
  const { definition } = workflow;
  return {
    what: 'run',
    definition,
    tooSlow: runTooSlow,
    async start(attempt) {
      const { reporter } = attempt;
      const team = await attempt.store.teams.get({ teamId: job.teamId });
      if (team === undefined)
        throw new RunFailure('error', `The team of this job (${job.teamId}) no longer exists`);
      const secrets = await deps.secrets(team.slug, workflow);
      attempt.clean = createMask(secrets).clean;
      attempt.signal.throwIfAborted();
      // Log lines that arrive before the process id is known. They are held back until the log contains a line with the
      // process id.
      const early: Parameters<RunInput['onLog']>[0][] = [];
      let keep = (line: (typeof early)[number]): void => {
        early.push(line);
      };
      const run = await startRun({
        ...deps,
        runAs: deps.runAs,
        definition,
        team: team.slug,
        workflowId: workflow.id,
        jobId: job.id,
        attempt: job.attempt,
        state: claimed.state,
        secrets,
        log: attempt.log,
        onLog: (line) => keep(line),
        onProgress: (said) => reporter.progress(said),
      });
      const name = sourceName(definition.source);
      reporter.line('info', `Attempt ${job.attempt}: ${name} runs as process ${run.process.pid}`);
      keep = ({ level, text }) => reporter.line(level, text);
      early.forEach(keep);
      return run;
    },
  };
}

export function runTooSlow(seconds: number): string {
  return `The run took longer than ${seconds} s and was stopped. Raise \`limits.timeout\` if it needs more time`;
}
