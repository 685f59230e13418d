/** A moment: how long ago, or in how long, with the time itself on hover. */
import { useNow } from './now.ts';
import { absolute, lasting, relative, type TimeStyle, useTimeStyle } from './times.ts';

export interface TimeProps {
  /** ISO 8601; null: it has not happened. */
  at: string | null;
  /** Stands for null; `–` unless told. */
  none?: string;
  /**
   * In a sentence. `since`: "for 3 min" or "since 2026-11-21 03:04:05"; `at`: "in 3 min" or "at 2026-11-21 03:04:05";
   * `itself`: the time, even where ages are chosen, for a sentence that the service has put together.
   */
  as?: 'since' | 'at' | 'itself';
}

/** A time in the way that is chosen for the page. */
export function Time({ at, none = '–', as }: TimeProps) {
  const style = useTimeStyle();
  if (at === null) return <span>{none}</span>;
  return (
    <time dateTime={at} title={`${absolute(at, 'local')} local\n${absolute(at, 'utc')}`} className="numbers">
      {style === 'relative' && as !== 'itself' ? <Age at={at} as={as} /> : words(at, style, as)}
    </time>
  );
}

function Age({ at, as }: { at: string; as: TimeProps['as'] }) {
  const now = useNow();
  return as === 'since' ? lasting(at, now) : relative(at, now);
}

function words(at: string, style: TimeStyle, as: TimeProps['as']): string {
  const itself = absolute(at, style === 'utc' ? 'utc' : 'local');
  return as === 'since' || as === 'at' ? `${as} ${itself}` : itself;
}
