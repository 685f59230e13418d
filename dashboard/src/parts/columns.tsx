/** Columns that several lists have. */
import { count } from './format.ts';
import { PageLink } from './page.tsx';
import type { Column } from './rows.tsx';
import { Dim, Time } from './values.tsx';

/** @param none shown instead of null */
export function timeColumn<Row>(
  header: string,
  timeOf: (row: Row) => string | null,
  none?: string,
): Column<Row> {
  return { id: header, header, width: 'fits', cell: (row) => <Time at={timeOf(row)} none={none} /> };
}

export function countColumn<Row>(header: string, countOf: (row: Row) => number): Column<Row> {
  const cell = (row: Row) => <span className="numbers">{count(countOf(row))}</span>;
  return { id: header, header, width: 'fits', align: 'end', cell };
}

/** A link to the workflow of a row. @param none shown for rows without one */
export function workflowColumn<Row extends { workflowId?: string | null }>(none = '–'): Column<Row> {
  return {
    id: 'workflow',
    header: 'Workflow',
    width: '180px',
    cell: ({ workflowId }) =>
      workflowId == null ? (
        <Dim>{none}</Dim>
      ) : (
        <PageLink to="/workflows/$workflowId" params={{ workflowId }} c="inherit" title={workflowId}>
          {workflowId}
        </PageLink>
      ),
  };
}
