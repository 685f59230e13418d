/** A status line on a terminal, which is redrawn in place and removed at the end. */

const DRAW_MS = 100;
const CLEAR = '\r\x1b[K';

/** Where it is drawn: `process.stderr`, or anything like it. */
export interface Screen {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

export interface LiveLine {
  /** Draws what `text` returns. Called more often than ten times a second, it does not even ask for the text. */
  show(text: () => string): void;
  /** Removes the line, so that something else can be written; the next `show` draws it anew. */
  clear(): void;
  /** Removes the line. Nothing is drawn after it. */
  stop(): void;
}

/**
 * Draws nothing unless the screen is a terminal.
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
      // A line that breaks or wraps could not be removed again.
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
