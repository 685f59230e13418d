/** When the next attempt goes out, in a sentence. */
import { useNow } from '../../parts/now.ts';
import { Time } from '../../parts/time.tsx';
import { isAfter } from './waits.ts';

/** @param props.what that goes out: `The next attempt` unless told */
export function NextAttempt({ at, what = 'The next attempt' }: { at: string | null; what?: string }) {
  const now = useNow();
  if (at === null) return null;
  return (
    <>
      {what} goes out {isAfter(at, now) ? <Time at={at} as="at" /> : 'now'}.
    </>
  );
}
