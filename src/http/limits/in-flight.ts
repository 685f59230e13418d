/** The requests in flight: counted for overload, and ended when the service stops. */
import type { ServerResponse } from 'node:http';
import type { Weight } from '../../model/load-limit.ts';

export class InFlight {
  /** Whether each still counts as work: see `working`. */
  readonly #answers = new Map<ServerResponse, boolean>();
  #working = 0;
  #isDraining = false;
  #onEmpty: (() => void) | undefined;

  get size(): number {
    return this.#answers.size;
  }

  /**
   * How many keep this process busy. Not counted: those that mostly wait and, from the next `releaseStarted` on, those
   * whose answer is being sent, at the pace of the client.
   */
  get working(): number {
    return this.#working;
  }

  add(answer: ServerResponse, weight: Weight): void {
    const isWork = weight !== 'light' && weight !== 'long';
    this.#answers.set(answer, isWork);
    if (isWork) this.#working += 1;
    if (this.#isDraining) answer.shouldKeepAlive = false;
    // `close` follows `finish`, and also comes when the connection broke.
    answer.once('close', () => this.#remove(answer));
  }

  /** Stops counting as work the answers whose sending has begun. */
  releaseStarted(): void {
    for (const [answer, isWork] of this.#answers) {
      if (!isWork || !answer.headersSent) continue;
      this.#answers.set(answer, false);
      this.#working -= 1;
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
    if (this.#answers.get(answer) === true) this.#working -= 1;
    this.#answers.delete(answer);
    if (this.#isDraining) answer.req.socket.end();
    if (this.#answers.size === 0) this.#onEmpty?.();
  }
}
