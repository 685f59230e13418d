/** `+3 ~1 −0`, in words for those who hear it. */
import { Text } from '@mantine/core';
import type { Version } from 'flowhook-client';
import { Numbers } from './numbers.tsx';
import { count } from './quantity.ts';
import { tone } from './state-badge.tsx';

/** @param props.withNothing also shows what is none of */
export function CountSigns({
  records: { added, changed, removed },
  withNothing = false,
}: {
  records: Omit<Version['records'], 'total'>;
  withNothing?: boolean;
}) {
  const parts = [
    { sign: '+', value: added, word: 'added', color: tone('good') },
    { sign: '~', value: changed, word: 'changed', color: tone('changed') },
    { sign: '−', value: removed, word: 'removed', color: tone('bad') },
  ];
  return (
    <Numbers>
      {parts
        .filter(({ value }) => withNothing || value > 0)
        .map(({ sign, value, word, color }) => (
          <Text key={word} span inherit title={`${count(value)} ${word}`} c={value === 0 ? 'dimmed' : color}>
            <span aria-hidden="true">
              {sign}
              {count(value)}
            </span>
            <span className="visually-hidden">{`${count(value)} ${word},`}</span>
          </Text>
        ))}
    </Numbers>
  );
}
