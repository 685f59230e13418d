/**
 * Processes of our own programs that were started before they are needed. They have loaded their code and wait for their
 * input, so they know nothing of any team, and each gets only one run.
 */
import type { ChildProcess } from 'node:child_process';
import { signalGroup } from './groups.ts';
import type { Launch } from './launcher-messages.ts';

/** Another run is expected within this time after two runs of the same kind within this time. */
const EXPECTED_MS = 60_000;
/** Maximum number of prepared processes. There are two kinds: modules and HTTP sources. */
const MAX_PREPARED = 2;

interface Kind {
  lastStartMs: number;
  isExpected: boolean;
  waiting?: ChildProcess | undefined;
  /** Ends the waiting process. */
  timer?: NodeJS.Timeout;
}

export class Prepared {
  readonly #start: (launch: Launch) => ChildProcess;
  readonly #kinds = new Map<string, Kind>();

  /** @param start starts a process that waits for its input. Its `pid` is undefined if it cannot be started */
  constructor(start: (launch: Launch) => ChildProcess) {
    this.#start = start;
  }

  /** Returns the prepared process for this run, if there is one. It no longer counts as prepared. */
  take(launch: Launch): ChildProcess | undefined {
    const name = kindOf(launch);
    const nowMs = performance.now();
    const kind = this.#kinds.get(name) ?? { lastStartMs: Number.NEGATIVE_INFINITY, isExpected: false };
    if (!this.#kinds.has(name) && this.#kinds.size === MAX_PREPARED) this.end();
    this.#kinds.set(name, kind);
    kind.isExpected = nowMs - kind.lastStartMs < EXPECTED_MS;
    kind.lastStartMs = nowMs;
    const { waiting } = kind;
    kind.waiting = undefined;
    clearTimeout(kind.timer);
    return waiting;
  }

  /** Prepares a process for the next run like this one, if one is expected. Call it when this run has started. */
  another(launch: Launch): void {
    const kind = this.#kinds.get(kindOf(launch));
    if (!kind?.isExpected || kind.waiting !== undefined) return;
    let child: ChildProcess;
    try {
      child = this.#start(launch);
    } catch {
      // This run has started, and the next one says why it cannot.
      return;
    }
    child.once('error', () => {});
    if (child.pid === undefined) return;
    kind.waiting = child;
    kind.timer = setTimeout(() => endWaiting(kind), EXPECTED_MS).unref();
    child.once('exit', () => {
      if (kind.waiting === child) kind.waiting = undefined;
    });
  }

  /** Ends all prepared processes. */
  end(): void {
    for (const kind of this.#kinds.values()) endWaiting(kind);
    this.#kinds.clear();
  }
}

function endWaiting(kind: Kind): void {
  clearTimeout(kind.timer);
  if (kind.waiting?.pid !== undefined) signalGroup(kind.waiting.pid, 'SIGKILL');
  kind.waiting = undefined;
}

/** Runs of a kind differ only in the input of their programs. */
function kindOf({ argv, environment, owner, hasChannel }: Launch): string {
  return JSON.stringify([argv, environment, owner, hasChannel]);
}
