/** Lets another process take part in the turns of this one: lines of JSON over a stream between the two. */
import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';
import type { HostTurns } from './host-turns.ts';

/** Nobody asks for more at a time; a process that does is not ours. */
const MAX_ASKED = 10_000;
const MAX_DELAY_MS = 60_000;

type Asked =
  | { enter: number; host: string; perHost: number; delayMs: number }
  | { leave: number }
  | { rest: number; host: string }
  | { slowDown: number; host: string };

/** Answers what the other process asks for. What it holds is given back when the stream ends. */
export function serveTurns(stream: Duplex, turns: HostTurns): void {
  const over = new AbortController();
  const held = new Map<number, (() => void) | undefined>();
  stream.on('error', () => {});
  stream.once('close', () => {
    over.abort();
    for (const leave of held.values()) leave?.();
    held.clear();
  });

  function read(asked: Asked): void {
    if ('leave' in asked) {
      held.get(asked.leave)?.();
      held.delete(asked.leave);
    } else if ('rest' in asked) {
      turns.rest(asked.host, asked.rest);
    } else if ('slowDown' in asked) {
      turns.slowDown(asked.host, bounded(asked.slowDown));
    } else if (held.size < MAX_ASKED) {
      const { enter: id, host, ...pace } = asked;
      held.set(id, undefined);
      const fair = { perHost: Math.max(1, pace.perHost || 1), delayMs: bounded(pace.delayMs) };
      turns.enter(host, fair, over.signal).then(
        (leave) => {
          // It may have given up meanwhile, or ended.
          if (over.signal.aborted || !held.has(id)) return leave();
          held.set(id, leave);
          stream.write(`${JSON.stringify({ go: id })}\n`);
        },
        () => {},
      );
    }
  }

  createInterface({ input: stream }).on('line', (line) => {
    const asked = parsed(line) as Asked | undefined;
    if (asked !== undefined) read(asked);
  });
}

/** What one process asks for holds for all: it may not stop a host for good. */
function bounded(delayMs: number): number {
  return Math.min(MAX_DELAY_MS, delayMs || 0);
}

/** A process that is killed leaves half a line behind. */
function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** The turns of the process at the other end. */
export function remoteTurns(stream: Duplex): HostTurns {
  const waiting = new Map<number, () => void>();
  let last = 0;
  const ask = (asked: Asked) => stream.write(`${JSON.stringify(asked)}\n`);
  createInterface({ input: stream }).on('line', (line) => {
    const { go } = JSON.parse(line) as { go: number };
    waiting.get(go)?.();
    waiting.delete(go);
  });

  return {
    async enter(host, { perHost, delayMs }, signal) {
      signal.throwIfAborted();
      last += 1;
      const id = last;
      const leave = () => ask({ leave: id });
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting.set(id, resolve);
      const giveUp = () => {
        waiting.delete(id);
        leave();
        reject(signal.reason);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      ask({ enter: id, host, perHost, delayMs });
      await promise.finally(() => signal.removeEventListener('abort', giveUp));
      return leave;
    },
    rest: (host, ms) => void ask({ rest: ms, host }),
    slowDown: (host, delayMs) => void ask({ slowDown: delayMs, host }),
  };
}
