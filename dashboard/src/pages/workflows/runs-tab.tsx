/** The runs of one workflow. */
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { workflowQuery } from '../../queries/workflows.ts';
import { RunTable } from '../runs/run-table.tsx';
import { DataEmpty } from './data-empty.tsx';

export function RunsTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  // It cannot be queued: nothing of what a table of runs proposes would work.
  if (workflow?.source.type === 'push' && workflow.lastJob === null && workflow.currentJob === null) {
    return <DataEmpty workflow={workflow} q={undefined} version={0} onClear={() => {}} />;
  }
  return <RunTable of={workflowId} />;
}
