/** Measures event loop delay: how late timers fire, and so what every request to this process waits for at least. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

type Histogram = ReturnType<typeof monitorEventLoopDelay>;

const RESOLUTION_MS = 20;
const WINDOW_MS = 60_000;

/** How long something due had to wait for the event loop, in milliseconds. */
export interface EventLoopDelay {
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

/** Measures continuously and reports the last whole minute; during the first minute, what there is so far. */
export class EventLoopMonitor {
  #histogram: Histogram | undefined;
  #timer: NodeJS.Timeout | undefined;
  #last: EventLoopDelay | undefined;

  start(): void {
    if (this.#histogram !== undefined) return;
    const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    histogram.enable();
    this.#histogram = histogram;
    this.#timer = setInterval(() => {
      this.#last = delayOf(histogram);
      histogram.reset();
    }, WINDOW_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#histogram?.disable();
    this.#histogram = undefined;
    this.#last = undefined;
  }

  read(): EventLoopDelay {
    return (
      this.#last ??
      (this.#histogram === undefined ? { p50Ms: 0, p99Ms: 0, maxMs: 0 } : delayOf(this.#histogram))
    );
  }
}

/** The histogram holds the time between two ticks of a timer, so the timer's own interval is subtracted. */
function delayOf(histogram: Histogram): EventLoopDelay {
  const ms = (nanoseconds: number) =>
    histogram.count === 0 ? 0 : Math.max(0, Math.round((nanoseconds / 1e6 - RESOLUTION_MS) * 100) / 100);
  return {
    p50Ms: ms(histogram.percentile(50)),
    p99Ms: ms(histogram.percentile(99)),
    maxMs: ms(histogram.max),
  };
}
