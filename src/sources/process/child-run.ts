/** Connects runs to child processes: what a child needs to know of its run, and what its end means for the run. */
import { formatSize } from '../../std/size.ts';
import type { Run, RunEnd, RunInput } from '../run.ts';
import type { Child, ChildEnd, ChildInput } from './child.ts';
import { temporaryPrefix } from './leftover.ts';

/** The options that every child of a run has. */
export function childOptions(
  input: RunInput,
): Pick<ChildInput, 'temporaryPrefix' | 'runAs' | 'limits' | 'secrets' | 'listener' | 'log' | 'killGraceMs'> {
  return {
    temporaryPrefix: temporaryPrefix(input),
    runAs: input.runAs,
    limits: input.definition.limits,
    secrets: input.secrets,
    listener: input,
    log: input.log,
    ...(input.killGraceMs === undefined ? {} : { killGraceMs: input.killGraceMs }),
  };
}

/** @param whenDone decides about a child that exited with 0; every other end is a failure for all kinds of sources */
export function runOf(child: Child, who: string, whenDone: (end: ChildEnd) => RunEnd): Run {
  return {
    process: child.process,
    batches: child.batches,
    get bytes() {
      return child.bytes();
    },
    end: child.end
      .then((end): RunEnd => failureOf(end, who) ?? whenDone(end))
      .catch((error: Error) => ({ ok: false, reason: 'error', error: `${who} was lost: ${error.message}` })),
    stop: child.stop,
    kill: child.kill,
  };
}

/** Why a child failed; undefined if it exited with 0. */
function failureOf(end: ChildEnd, who: string): RunEnd | undefined {
  if (end.excess !== undefined) {
    const { usedBytes, limitBytes } = end.excess;
    return {
      ok: false,
      reason: 'memory',
      error:
        `${who} and the processes that it started held ${formatSize(usedBytes)} of memory together and were killed: ` +
        `\`limits.memory\` is ${formatSize(limitBytes)}. Raise it if the work needs more`,
    };
  }
  if (end.outputMistake !== undefined) return { ok: false, reason: 'output', error: end.outputMistake };
  if (end.stopped) return failed(`${who} was stopped before it had finished`, end);
  if (end.signal === 'SIGKILL') {
    return failed(
      `${who} was killed (SIGKILL) by somebody else: often the system, when memory runs out`,
      end,
    );
  }
  if (end.signal !== null) return failed(`${who} was ended by the signal ${end.signal}`, end);
  if (end.code !== 0) return failed(`${who} ended with exit code ${end.code}`, end);
  return undefined;
}

/** A failure whose message ends with the last lines of the child's standard error. */
export function failed(sentence: string, end: ChildEnd): RunEnd {
  const words =
    end.tail === '' ? 'It wrote nothing to standard error' : `The end of its standard error:\n${end.tail}`;
  return { ok: false, reason: 'error', error: `${sentence}. ${words}` };
}
