/**
 * Writes the log and the progress of a running attempt to the database: at most once a second, only when something has
 * changed, and with bounded memory however much is logged.
 *
 *     lines ──▶ the first MiB ──────────────────────▶ written within a second
 *        └───▶ the last MiB, kept in memory ──▶ while the attempt runs: the newest 64 KiB each second
 *                                            └▶ at the end: all of it, replacing what was written of it
 *
 * The last lines of a successful attempt are written by the transaction that publishes.
 */

import { FencedError } from '../model/error.ts';
import { type LogLevel, type LogLine, logLineBytes, type Progress } from '../model/job.ts';
import type { Logger } from '../observe/log.ts';
import { within } from '../std/clock.ts';
import type { Store } from '../store/store.ts';

/** Delay before the first report. An attempt that ends sooner is reported only once, at its end. */
const FIRST_MS = 200;
const EVERY_MS = 1_000;
/** An attempt that ends waits at most this long until its log has been written. */
const FLUSH_MS = 2_000;
const HEAD_BYTES = 1 << 20;
const RING_BYTES = 1 << 20;
const NEWEST_BYTES = 64 << 10;
const WRITE_BYTES = 256 << 10;
const MAX_LINE_LENGTH = 8_192;
const MAX_MESSAGE_LENGTH = 500;

type Report = Omit<Parameters<Store['jobs']['report']>[0], 'held'>;

export class Reporter {
  readonly #report: (report: Report) => Promise<void>;
  readonly #now: () => number;
  readonly #log: Logger;
  readonly #progress: Progress = { records: 0, bytes: 0, pages: null, message: null };
  /** The last progress written, as JSON. */
  #writtenProgress = '';
  #lastSeq = 0;
  /** Unwritten lines of the first MiB. */
  #head: LogLine[] = [];
  #headBytes = 0;
  readonly #ring = new Ring();
  /** `#writtenSeq` is the `seq` of the last line written. `#leftOut` is whether any lines before it were left out. */
  #writtenSeq = 0;
  #leftOut = false;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = performance.now() + FIRST_MS;
  #writing: Promise<void> = Promise.resolve();
  #failed = false;
  #over = false;

  /** @param input.report writes a report. The first rejection is logged. A rejection does not affect the run */
  constructor(input: { report: (report: Report) => Promise<void>; now: () => number; log: Logger }) {
    this.#report = input.report;
    this.#now = input.now;
    this.#log = input.log;
  }

  line(level: LogLevel, text: string): void {
    this.#lastSeq += 1;
    // The text is copied, because a slice would keep the whole original text in memory.
    const copy = Buffer.from(text.slice(0, MAX_LINE_LENGTH));
    const line = { seq: this.#lastSeq, at: this.#now(), level, text: copy.toString() };
    const bytes = logLineBytes(line.text);
    if (this.#headBytes + bytes <= HEAD_BYTES) {
      this.#head.push(line);
      this.#headBytes += bytes;
      this.#writtenSeq = line.seq;
    } else {
      // The first MiB now counts as full. Otherwise a shorter line that follows could be written before this
      // line.
      this.#headBytes = HEAD_BYTES;
      this.#ring.push(line, bytes);
    }
    this.#soon();
  }

  progress(change: Partial<Progress>): void {
    Object.assign(this.#progress, change);
    this.#progress.message = this.#progress.message?.slice(0, MAX_MESSAGE_LENGTH) ?? null;
    this.#soon();
  }

  /**
   * Writes all lines and progress that have not been written yet. Call it before the end of the attempt is written,
   * because the database then accepts no more lines. Resolves after 2 s at the latest, even if the database is slow.
   * May be called more than once.
   */
  async flush(): Promise<void> {
    const written = this.#write(() => this.#writeAll());
    await within(FLUSH_MS, written, () => undefined);
  }

  /**
   * Passes the unwritten lines and progress to `write`, which also ends the attempt. Writes them beforehand if they are
   * too many for one transaction. If `write` rejects, they count as unwritten.
   */
  async last<Result>(write: (report: Omit<Report, 'restart'>) => Promise<Result>): Promise<Result> {
    const fits = this.#head.length === firstOf(this.#head).length && this.#ring.lastSeq <= this.#writtenSeq;
    if (!fits || this.#leftOut) await this.flush();
    else await within(FLUSH_MS, this.#writing, () => undefined);
    const lines = firstOf(this.#head);
    const { report, written } = this.#next(lines);
    const result = await write(report);
    this.#isWritten(lines);
    written();
    return result;
  }

  stop(): void {
    this.#over = true;
    clearTimeout(this.#timer);
  }

  #soon(): void {
    if (this.#timer !== undefined || this.#over) return;
    this.#timer = setTimeout(
      () => {
        void this.#write(() => this.#writeNews()).then(() => {
          this.#dueAt = performance.now() + EVERY_MS;
          this.#timer = undefined;
          if (this.#hasNews()) this.#soon();
        });
      },
      Math.max(0, this.#dueAt - performance.now()),
    );
    this.#timer.unref();
  }

  #hasNews(): boolean {
    return (
      this.#head.length > 0 ||
      this.#ring.lastSeq > this.#writtenSeq ||
      JSON.stringify(this.#progress) !== this.#writtenProgress
    );
  }

  /** Runs one write at a time. */
  #write(write: () => Promise<void>): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      try {
        if (!this.#over) await write();
      } catch (err) {
        if (err instanceof FencedError) this.stop();
        else if (!this.#failed) this.#log.warn({ err }, 'job.report_failed');
        this.#failed = true;
      }
    });
    return this.#writing;
  }

  async #writeNews(): Promise<void> {
    await this.#send(this.#ring.newest(this.#writtenSeq, NEWEST_BYTES), false);
  }

  async #writeAll(): Promise<void> {
    const unwritten = this.#ring.newest(this.#writtenSeq, RING_BYTES);
    if (!this.#leftOut && !this.#skips(unwritten)) return this.#send(unwritten, false);
    await this.#send([], false);
    await this.#send(this.#ring.newest(0, RING_BYTES), true);
    this.#leftOut = false;
  }

  /** Writes the pending lines of the first MiB, then the lines in `newest`, and the progress. */
  async #send(newest: readonly LogLine[], restart: boolean): Promise<void> {
    while (this.#head.length > 0) {
      const lines = firstOf(this.#head);
      await this.#sendOne(lines, false);
      this.#isWritten(lines);
    }
    let rest = newest;
    while (rest.length > 0) {
      const lines = firstOf(rest);
      await this.#sendOne(lines, restart && rest === newest);
      this.#leftOut ||= this.#skips(lines);
      this.#writtenSeq = Math.max(this.#writtenSeq, lines.at(-1)?.seq ?? 0);
      rest = rest.slice(lines.length);
    }
    await this.#sendOne([], false);
  }

  /** Removes lines of the first MiB, which a slow report and `last` may both have written. */
  #isWritten(lines: readonly LogLine[]): void {
    const seq = lines.at(-1)?.seq ?? 0;
    this.#head = this.#head.filter((line) => line.seq > seq);
  }

  /** Writes one report, which includes the progress if it has changed. */
  async #sendOne(lines: readonly LogLine[], restart: boolean): Promise<void> {
    const { report, written } = this.#next(lines);
    if (report.lines === undefined && report.progress === undefined) return;
    await this.#report({ ...report, ...(restart ? { restart } : {}) });
    written();
  }

  /** Returns a report of these lines and of the progress, if it has changed. Call `written` once it is stored. */
  #next(lines: readonly LogLine[]): { report: Report; written(): void } {
    const progress = { ...this.#progress };
    const json = JSON.stringify(progress);
    return {
      report: {
        ...(lines.length === 0 ? {} : { lines }),
        ...(json === this.#writtenProgress ? {} : { progress }),
      },
      written: () => {
        this.#writtenProgress = json;
      },
    };
  }

  /** Returns whether any lines between the last written line and these lines were left out. */
  #skips(lines: readonly LogLine[]): boolean {
    const first = lines[0];
    return first !== undefined && first.seq > this.#writtenSeq + 1;
  }
}

/**
 * Returns the first of the lines, as many as one transaction may write. Other writes then get a turn before the
 * remaining lines are written.
 */
function firstOf(lines: readonly LogLine[]): readonly LogLine[] {
  let bytes = 0;
  const beyond = lines.findIndex(({ text }, place) => {
    bytes += logLineBytes(text);
    return place > 0 && bytes > WRITE_BYTES;
  });
  // The lines are copied, because further lines may be added while these lines are being written.
  return lines.slice(0, beyond === -1 ? lines.length : beyond);
}

/** A ring buffer that holds the newest MiB of log lines. */
class Ring {
  lastSeq = 0;
  #lines: LogLine[] = [];
  /**
   * The index of the first line that is still in the ring. Older lines are removed in bulk, because shifting the array
   * for each line would be slow.
   */
  #from = 0;
  #bytes = 0;

  push(line: LogLine, bytes: number): void {
    this.#lines.push(line);
    this.#bytes += bytes;
    this.lastSeq = line.seq;
    while (this.#bytes > RING_BYTES) {
      this.#bytes -= logLineBytes(this.#lines[this.#from]?.text ?? '');
      this.#from += 1;
    }
    if (2 * this.#from > this.#lines.length) {
      this.#lines = this.#lines.slice(this.#from);
      this.#from = 0;
    }
  }

  /** Returns the newest lines whose `seq` is greater than `afterSeq`, at most `maxBytes` in total. */
  newest(afterSeq: number, maxBytes: number): LogLine[] {
    let start = this.#lines.length;
    let bytes = 0;
    while (start > this.#from) {
      const line = this.#lines[start - 1] as LogLine;
      bytes += logLineBytes(line.text);
      if (line.seq <= afterSeq || bytes > maxBytes) break;
      start -= 1;
    }
    return this.#lines.slice(start);
  }
}
