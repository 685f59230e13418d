/** Makes a run of a child process: what its end means, and the sentence for it. */
import { formatSize } from '../size.ts';
import type { Child, ChildEnd } from './child.ts';
import type { Run, RunEnd } from './run.ts';

/** What the end of a child means is the same for every kind of source, but for what an exit code 0 is worth. */
export function runOf(child: Child, who: string, whenDone: (end: ChildEnd) => RunEnd): Run {
  return {
    process: child.process,
    batches: child.batches,
    get bytes() {
      return child.bytes();
    },
    end: child.end.then(
      (end): RunEnd => failureOf(end, who) ?? whenDone(end),
      (error: Error): RunEnd => ({ ok: false, reason: 'error', error: `${who} was lost: ${error.message}` }),
    ),
    stop: child.stop,
    kill: child.kill,
  };
}

/** Says why a child failed, or nothing if it ended well. */
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

/** A failure whose sentence is followed by what the child had to say. */
export function failed(sentence: string, end: ChildEnd): RunEnd {
  const words =
    end.tail === '' ? 'It wrote nothing to standard error' : `The end of its standard error:\n${end.tail}`;
  return { ok: false, reason: 'error', error: `${sentence}. ${words}` };
}
