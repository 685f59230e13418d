/** The last runs of a workflow as small bars: how each ended, and how long it took. */
import { duration } from './quantity.ts';
import { type State, stateColor } from './state-badge.tsx';
import { absolute } from './times.ts';

export interface StripRun {
  id: string;
  state: State;
  queuedAt: string;
  startedAt: string | null;
  finishedAt: string | null;
}

export interface StripProps {
  /** Newest first, as the service tells them. */
  runs: readonly StripRun[];
  /** How many there is room for; 14 unless told. */
  size?: number;
}

const BAR = 6;
const GAP = 2;
const HEIGHT = 22;
const LEAST = 5;

/** The oldest run is on the left. A taller bar took longer; its title has the details. */
export function Strip({ runs, size = 14 }: StripProps) {
  const shown = runs.slice(0, size).reverse();
  const longest = Math.max(1, ...shown.map((run) => tookMs(run) ?? 0));
  return (
    <svg width={size * (BAR + GAP) - GAP} height={HEIGHT} role="img" aria-label={summary(shown)}>
      {shown.map((run, index) => {
        const height = LEAST + (HEIGHT - LEAST) * Math.sqrt((tookMs(run) ?? 0) / longest);
        const x = (size - shown.length + index) * (BAR + GAP);
        return (
          <rect
            key={run.id}
            x={x}
            y={HEIGHT - height}
            width={BAR}
            height={height}
            rx={1}
            fill={stateColor(run.state)}
          >
            <title>{titleOf(run)}</title>
          </rect>
        );
      })}
    </svg>
  );
}

function titleOf(run: StripRun): string {
  const took = tookMs(run);
  return `${run.state}, ${absolute(run.startedAt ?? run.queuedAt, 'local')}${took === null ? '' : `, took ${duration(took)}`}`;
}

function tookMs({ startedAt, finishedAt }: StripRun): number | null {
  return startedAt === null || finishedAt === null ? null : Date.parse(finishedAt) - Date.parse(startedAt);
}

function summary(runs: readonly StripRun[]): string {
  if (runs.length === 0) return 'No runs yet';
  const counts = new Map<State, number>();
  for (const { state } of runs) counts.set(state, (counts.get(state) ?? 0) + 1);
  return `Last ${runs.length} runs: ${[...counts].map(([state, number]) => `${number} ${state}`).join(', ')}`;
}
