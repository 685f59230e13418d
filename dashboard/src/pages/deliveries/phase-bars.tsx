/** The phases of an attempt, drawn. */
import { duration } from '../../parts/quantity.ts';
import { stateColor } from '../../parts/state-badge.tsx';
import styles from './phase-bars.module.css';
import { type Attempt, type Phase, phasesOf } from './phases.ts';

const COLORS: Record<Phase['kind'], string> = {
  queue: stateColor('queued'),
  network: stateColor('running'),
  receiver: stateColor('finished'),
};
/** A bar is never so thin that it cannot be seen, in per cent. */
const LEAST = 0.6;

export function PhaseBars({ attempt }: { attempt: Attempt }) {
  const phases = phasesOf(attempt);
  const endMs = Math.max(1, phases.at(-1)?.toMs ?? 0);
  return (
    <ol className={styles.bars} aria-label="Where the time went">
      {phases.map(({ name, fromMs, toMs, kind }) => {
        const width = Math.max(LEAST, (100 * (toMs - fromMs)) / endMs);
        const isFailure = attempt.outcome !== 'ok' && toMs === endMs && name === 'Then it failed';
        return (
          <li key={name} className={styles.row}>
            <span>{name}</span>
            <div className={styles.track} aria-hidden="true">
              <div
                className={styles.bar}
                style={{
                  left: `${Math.min(100 - width, (100 * fromMs) / endMs)}%`,
                  width: `${width}%`,
                  background: isFailure ? stateColor('dead') : COLORS[kind],
                }}
              />
            </div>
            <span className="numbers">{duration(toMs - fromMs)}</span>
          </li>
        );
      })}
    </ol>
  );
}
