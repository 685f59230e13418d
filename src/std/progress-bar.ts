/** A status line on a terminal, which is redrawn in place and removed at the end. It may contain a progress bar. */
import { grouped } from './amounts.ts';

const WIDTH = 24;

export interface ProgressBar {
  /** Shows the progress, at most ten times per second. `done` is in the unit of `total`. */
  update(progress: { done: number; count: number }): void;
  /** Removes the line. Nothing is drawn after this call. */
  stop(): void;
}

/**
 * Makes a progress bar, which draws nothing unless the screen is a terminal.
 *
 * @param input.total the amount of work; undefined if unknown: then there is no bar
 * @param input.noun the counted things, in the plural
 * @param input.clock in milliseconds
 */
export function createProgressBar(input: {
  screen: Screen;
  total: number | undefined;
  noun: string;
  clock: () => number;
}): ProgressBar {
  const { screen, total, noun, clock } = input;
  const startedAt = clock();
  const line = createLiveLine(screen, clock);
  return {
    update(progress) {
      line.show(() => progressLine({ ...progress, total, noun, elapsedMs: clock() - startedAt }));
    },
    stop: line.stop,
  };
}

/** Formats the line: `[######··················] 25 %  50,000 records  12,500/s  12 s left` */
export function progressLine(input: {
  done: number;
  count: number;
  total: number | undefined;
  noun: string;
  elapsedMs: number;
}): string {
  const { done, count, total, noun, elapsedMs } = input;
  const perSecond = elapsedMs === 0 ? 0 : Math.round((count * 1_000) / elapsedMs);
  const counted = `${grouped(count)} ${noun}  ${grouped(perSecond)}/s`;
  if (total === undefined || total === 0) return counted;
  const part = Math.min(1, done / total);
  const filled = Math.round(part * WIDTH);
  const bar = `[${'#'.repeat(filled)}${'·'.repeat(WIDTH - filled)}] ${Math.floor(part * 100)} %`;
  const left = part === 0 ? '' : `  ${duration((elapsedMs * (1 - part)) / part)} left`;
  return `${bar}  ${counted}${left}`;
}

function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const DRAW_MS = 100;
const CLEAR = '\r\x1b[K';

/** The stream to which lines are drawn, for example `process.stderr`. */
export interface Screen {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

interface LiveLine {
  /** Draws the result of `text`, which is called at most ten times per second. */
  show(text: () => string): void;
  /** Removes the line so that other text can be written. The next `show` draws the line again. */
  clear(): void;
  /** Removes the line. Nothing is drawn after this call. */
  stop(): void;
}

/**
 * Makes a status line, which draws nothing unless the screen is a terminal.
 *
 * @param clock in milliseconds
 */
export function createLiveLine(screen: Screen, clock: () => number): LiveLine {
  let drawnAt: number | undefined;
  let visible = false;
  let stopped = screen.isTTY !== true;
  const clear = () => {
    if (visible) screen.write(CLEAR);
    visible = false;
  };
  return {
    show(text) {
      const now = clock();
      if (stopped || (drawnAt !== undefined && now - drawnAt < DRAW_MS)) return;
      drawnAt = now;
      visible = true;
      // The text is truncated to the width of the terminal, because a line that wraps could not be removed.
      const shown = text().replace(/\p{Cc}/gu, ' ');
      screen.write(`${CLEAR}${shown.slice(0, (screen.columns ?? 200) - 1)}`);
    },
    clear,
    stop() {
      clear();
      stopped = true;
    },
  };
}
