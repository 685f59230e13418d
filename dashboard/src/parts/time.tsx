/** A moment: how long ago, or in how long, with the time itself on hover. */
import { useNow } from './now.ts';
import { absolute, relative, useTimeStyle } from './times.ts';

export interface TimeProps {
  /** ISO 8601; null: it has not happened. */
  at: string | null;
  /** Stands for null; `–` unless told. */
  none?: string;
}

/** A time in the way that is chosen for the page. */
export function Time({ at, none = '–' }: TimeProps) {
  const style = useTimeStyle();
  if (at === null) return <span>{none}</span>;
  return (
    <time dateTime={at} title={`${absolute(at, 'local')} local\n${absolute(at, 'utc')}`} className="numbers">
      {style === 'relative' ? <Age at={at} /> : absolute(at, style)}
    </time>
  );
}

function Age({ at }: { at: string }) {
  return relative(at, useNow());
}
