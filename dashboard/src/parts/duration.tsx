/** How long something took, or has been going on. */
import { useNow } from './now.ts';
import { duration } from './quantity.ts';

export type DurationProps =
  | { /** Milliseconds; null: not known. */ ms: number | null }
  | {
      /** ISO 8601; null: it has not begun. */
      from: string | null;
      /** null: it still goes on, and the number grows. */
      to: string | null;
    };

/** A length of time with its unit. */
export function Duration(props: DurationProps) {
  if ('ms' in props) return <Length ms={props.ms} />;
  const { from, to } = props;
  if (from === null) return <Length ms={null} />;
  return to === null ? <Growing from={from} /> : <Length ms={Date.parse(to) - Date.parse(from)} />;
}

function Growing({ from }: { from: string }) {
  return <Length ms={Math.max(0, Math.floor((useNow() - Date.parse(from)) / 1_000) * 1_000)} />;
}

function Length({ ms }: { ms: number | null }) {
  return <span className="numbers">{ms === null ? '–' : duration(ms)}</span>;
}
