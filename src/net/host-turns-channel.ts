/** Shares this process's per-host throttle with a child process, as JSON lines over a stream. */
import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';
import { splitLines } from '../std/lines.ts';
import type { HostTurns } from './host-turns.ts';

/**
 * Maximum number of requests of one child that wait for their turn or are in progress. Further requests never start.
 */
const MAX_PENDING = 10_000;
const MAX_MESSAGE_BYTES = 16 * 1_024;
/**
 * Limits for the delays and pauses that a child reports. They can also apply to other jobs, so they must not block a
 * host permanently.
 */
const MAX_DELAY_MS = 60_000;
const MAX_REST_MS = 5 * 60_000;

/** A message from a child. The number in `enter` and `leave` is the id that the child has chosen for its request. */
type Message =
  | { enter: number; host: string; perHost: number; delayMs: number }
  | { leave: number }
  | { rest: number; host: string; whom: 'team' | 'all' }
  | { slowDown: number; host: string };

/**
 * Handles the messages of a child. When the stream ends, all turns of the child are released. A module may write
 * anything to the stream, so a message that is malformed or too long closes the stream.
 */
export function serveTurns(stream: Duplex, turns: HostTurns): void {
  const closed = new AbortController();
  const held = new Map<number, (() => void) | undefined>();
  stream.on('error', () => {});
  stream.once('close', () => {
    closed.abort();
    for (const leave of held.values()) leave?.();
    held.clear();
  });

  function handle(message: Message): void {
    if ('leave' in message) {
      held.get(message.leave)?.();
      held.delete(message.leave);
      return;
    }
    const host = String(message.host);
    if ('rest' in message) turns.rest(host, bounded(message.rest, MAX_REST_MS), message.whom);
    else if ('slowDown' in message) turns.slowDown(host, bounded(message.slowDown, MAX_DELAY_MS));
    // A second request with an id that is in use is ignored, because its turn would never be released.
    else if (held.size < MAX_PENDING && !held.has(message.enter)) enter(message.enter, host, message);
  }

  function enter(id: number, host: string, { perHost, delayMs }: { perHost: number; delayMs: number }): void {
    held.set(id, undefined);
    const pace = { perHost: Math.max(1, Number(perHost) || 1), delayMs: bounded(delayMs, MAX_DELAY_MS) };
    turns.enter(host, pace, closed.signal).then(
      (leave) => {
        // The child may have canceled the request or exited while the request was waiting for its turn.
        if (closed.signal.aborted || !held.has(id)) return leave();
        held.set(id, leave);
        stream.write(`${JSON.stringify({ go: id })}\n`);
      },
      () => {},
    );
  }

  const lines = splitLines(MAX_MESSAGE_BYTES);
  stream.on('data', (chunk: Buffer) => {
    try {
      for (const line of lines.push(chunk)) handle(JSON.parse(line));
    } catch {
      stream.destroy();
    }
  });
}

function bounded(ms: number, maxMs: number): number {
  return Math.min(maxMs, Math.max(0, Number(ms) || 0));
}

/** Creates the child's side of the channel. It uses the throttle of the process at the other end of the stream. */
export function remoteTurns(stream: Duplex): HostTurns {
  const waiting = new Map<number, () => void>();
  let lastId = 0;
  const send = (message: Message) => stream.write(`${JSON.stringify(message)}\n`);
  createInterface({ input: stream }).on('line', (line) => {
    const { go } = JSON.parse(line) as { go: number };
    waiting.get(go)?.();
    waiting.delete(go);
  });

  return {
    async enter(host, { perHost, delayMs }, signal) {
      signal.throwIfAborted();
      lastId += 1;
      const id = lastId;
      const leave = () => send({ leave: id });
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting.set(id, resolve);
      const giveUp = () => {
        waiting.delete(id);
        leave();
        reject(signal.reason);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      send({ enter: id, host, perHost, delayMs });
      await promise.finally(() => signal.removeEventListener('abort', giveUp));
      return leave;
    },
    rest: (host, ms, whom) => void send({ rest: ms, host, whom }),
    slowDown: (host, delayMs) => void send({ slowDown: delayMs, host }),
  };
}
