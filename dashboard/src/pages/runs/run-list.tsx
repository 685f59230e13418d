/** Every run of the team, as it happens. */
import { PageHeader } from '../../parts/page-header.tsx';
import { RunTable } from './run-table.tsx';

export function RunListPage() {
  return (
    <>
      <PageHeader title="Runs" />
      <RunTable />
    </>
  );
}
