/** Columns that several lists have. */
import { count } from './format.ts';
import { PageLink } from './page.tsx';
import type { Column } from './rows.tsx';
import { Dim, Time } from './values.tsx';

/**
 * @param shape the width, `rest` for a share of the remaining space, `wraps` for such a share of long text, or several
 *   properties
 */
export function column<Row>(
  header: string,
  shape: Column<Row>['width'] | 'rest' | 'wraps' | Pick<Column<Row>, 'width' | 'align' | 'isWrapped'>,
  cell: Column<Row>['cell'],
): Column<Row> {
  if (shape === 'rest' || shape === 'wraps')
    return { id: header, header, cell, isWrapped: shape === 'wraps' };
  return { id: header, header, cell, ...(typeof shape === 'object' ? shape : { width: shape }) };
}

/** @param none shown instead of null */
export function timeColumn<Row>(
  header: string,
  timeOf: (row: Row) => string | null,
  none?: string,
): Column<Row> {
  return column(header, 'fits', (row) => <Time at={timeOf(row)} none={none} />);
}

export function countColumn<Row>(header: string, countOf: (row: Row) => number): Column<Row> {
  const cell = (row: Row) => <span className="numbers">{count(countOf(row))}</span>;
  return column(header, { width: 'fits', align: 'end' }, cell);
}

/** A link to the workflow of a row. @param none shown for rows without one */
export function workflowColumn<Row extends { workflowId?: string | null }>(none = '–'): Column<Row> {
  return column('Workflow', '180px', ({ workflowId }) =>
    workflowId == null ? (
      <Dim>{none}</Dim>
    ) : (
      <PageLink to="/workflows/$workflowId" params={{ workflowId }} c="inherit" title={workflowId}>
        {workflowId}
      </PageLink>
    ),
  );
}
