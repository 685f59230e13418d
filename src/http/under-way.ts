/** The answers under way: counted, ended with their connections when the service stops, and cut when its time is over. */
import type { ServerResponse } from 'node:http';
import type { Weight } from '../model/load-limit.ts';

export class UnderWay {
  /** Whether each is work for this process: see `working`. */
  readonly #answers = new Map<ServerResponse, boolean>();
  #working = 0;
  #isLeaving = false;
  #onEmpty: (() => void) | undefined;

  get size(): number {
    return this.#answers.size;
  }

  /**
   * How many are work for this process: neither those that mostly wait, nor, after a `sift`, those that have begun
   * to be sent, for their pace is the reader's.
   */
  get working(): number {
    return this.#working;
  }

  begin(answer: ServerResponse, weight: Weight): void {
    const isWork = weight !== 'light' && weight !== 'long';
    this.#answers.set(answer, isWork);
    if (isWork) this.#working += 1;
    if (this.#isLeaving) answer.shouldKeepAlive = false;
    // `close` follows `finish`, and also comes when the connection broke.
    answer.once('close', () => this.#end(answer));
  }

  /** Finds those that have begun to be sent. */
  sift(): void {
    for (const [answer, isWork] of this.#answers) {
      if (!isWork || !answer.headersSent) continue;
      this.#answers.set(answer, false);
      this.#working -= 1;
    }
  }

  /** From now on connections end with their answers, and those that can still say so say it. */
  leave(): void {
    this.#isLeaving = true;
    for (const answer of this.#answers.keys()) answer.shouldKeepAlive = false;
  }

  /** Breaks off what is under way; answers how many there were. */
  cut(): number {
    const answers = [...this.#answers.keys()];
    for (const { socket } of answers) socket?.destroy();
    return answers.length;
  }

  /** Resolves as soon as there is none. */
  async empty(): Promise<void> {
    if (this.#answers.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  #end(answer: ServerResponse): void {
    if (this.#answers.get(answer) === true) this.#working -= 1;
    this.#answers.delete(answer);
    if (this.#isLeaving) answer.req.socket.end();
    if (this.#answers.size === 0) this.#onEmpty?.();
  }
}
