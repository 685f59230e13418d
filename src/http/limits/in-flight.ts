/** The requests in flight: counted for overload, and ended when the service stops. */
import type { ServerResponse } from 'node:http';
import type { Weight } from '../../model/load-limit.ts';
import { isBodyArriving } from '../body.ts';

interface Entry {
  /** Whether its weight makes it work at all. */
  canBeWork: boolean;
  /** Whether it counts at the moment: see `working`. */
  isWork: boolean;
}

export class InFlight {
  readonly #answers = new Map<ServerResponse, Entry>();
  #working = 0;
  #isDraining = false;
  #onEmpty: (() => void) | undefined;

  get size(): number {
    return this.#answers.size;
  }

  /**
   * How many keep this process busy. Not counted: those that mostly wait and, from the next `recount` on, those whose
   * body is arriving or whose answer is being sent, both at the pace of the client. Otherwise a thousand slow clients,
   * without a key even, would have everybody else refused.
   */
  get working(): number {
    return this.#working;
  }

  add(answer: ServerResponse, weight: Weight): void {
    const canBeWork = weight !== 'light' && weight !== 'long';
    this.#answers.set(answer, { canBeWork, isWork: canBeWork });
    if (canBeWork) this.#working += 1;
    if (this.#isDraining) answer.shouldKeepAlive = false;
    // `close` follows `finish`, and also comes when the connection broke.
    answer.once('close', () => this.#remove(answer));
  }

  /** Counts anew which requests are work: those whose client is not the one that is waited for. */
  recount(): void {
    for (const [answer, entry] of this.#answers) {
      const isWork = entry.canBeWork && !answer.headersSent && !isBodyArriving(answer.req);
      if (isWork === entry.isWork) continue;
      entry.isWork = isWork;
      this.#working += isWork ? 1 : -1;
    }
  }

  /** From now on each connection ends with its answer, and answers not yet begun say `connection: close`. */
  drain(): void {
    this.#isDraining = true;
    for (const answer of this.#answers.keys()) answer.shouldKeepAlive = false;
  }

  /** Destroys the connections of all that is left; returns how many answers that cut off. */
  cut(): number {
    const answers = [...this.#answers.keys()];
    for (const { socket } of answers) socket?.destroy();
    return answers.length;
  }

  /** Resolves as soon as nothing is in flight. For one caller at a time. */
  async empty(): Promise<void> {
    if (this.#answers.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  #remove(answer: ServerResponse): void {
    if (this.#answers.get(answer)?.isWork === true) this.#working -= 1;
    this.#answers.delete(answer);
    if (this.#isDraining) answer.req.socket.end();
    if (this.#answers.size === 0) this.#onEmpty?.();
  }
}
