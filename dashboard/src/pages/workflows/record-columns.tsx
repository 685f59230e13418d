/** The fields of records as columns. Values are untrusted, so they are rendered as text, never as markup. */
import { Anchor } from '@mantine/core';
import type { DataRecord } from '../../../../client/src/flowhook-client.ts';
import type { Column } from '../../parts/rows.tsx';
import { Dim, IdButton } from '../../parts/values.tsx';
import { addressIn, inWords, valueIn } from './records.ts';

/** Longer values are cut; the detail view shows them in full. */
const MAX_CHARACTERS = 300;
const CHARACTER_PX = 8.1;
const MIN_PX = 90;
const MAX_PX = 320;
/** The number of rows that determine the width of a column. */
const MEASURED = 50;

export function recordColumns(props: {
  fields: readonly string[];
  rows: readonly DataRecord[];
  onOpen: (id: string) => void;
}): (Column<DataRecord> | false)[] {
  const { fields, rows, onOpen } = props;
  const measured = rows.slice(0, MEASURED);
  return fields.map((field) => {
    const isNumber = measured.some((row) => typeof valueIn(row, field) === 'number');
    return {
      id: field,
      header: field,
      isSortable: true,
      width: `${widthOf(field, measured)}px`,
      ...(isNumber ? { align: 'end' as const } : {}),
      cell: (record) =>
        field === 'id' ? (
          <IdButton id={record.id} onOpen={onOpen} />
        ) : (
          <Cell value={valueIn(record, field)} />
        ),
    };
  });
}

function Cell({ value }: { value: unknown }) {
  if (value === undefined) return null;
  const text = inWords(value);
  if (value === null || value === '') {
    return <Dim>{value === null ? 'null' : '(empty)'}</Dim>;
  }
  const shown = text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
  const address = addressIn(value);
  if (address !== null) {
    return (
      <Anchor href={address} target="_blank" rel="noopener noreferrer" inherit title={text}>
        {shown}
      </Anchor>
    );
  }
  return (
    <span title={shown} className={typeof value === 'number' ? 'numbers' : undefined}>
      {shown}
    </span>
  );
}

function widthOf(field: string, rows: readonly DataRecord[]): number {
  const longest = Math.max(field.length + 2, ...rows.map((row) => inWords(valueIn(row, field)).length));
  return Math.round(Math.min(MAX_PX, Math.max(MIN_PX, longest * CHARACTER_PX + 24)));
}
