/** Why there are no records. */
import type { Workflow } from 'flowhook-client';
import { curl } from '../../parts/curl.ts';
import { EmptyState } from '../../parts/empty-state.tsx';
import { PageLink } from '../../parts/link.tsx';

export function DataEmpty({
  workflow: { id, source, version: newest, currentJob },
  q,
  version,
  onClear,
}: {
  workflow: Workflow;
  q: string | undefined;
  version: number;
  onClear: () => void;
}) {
  if (q !== undefined) return <EmptyState title={`No record contains “${q}”`} onClear={onClear} />;
  if (newest > 0) return <EmptyState title={`Version ${version} holds no records`} />;
  const path = `/v1/workflows/${encodeURIComponent(id)}`;
  if (source.type === 'push') {
    const json = [{ id: '1', name: 'Ada Lovelace', email: 'ada@example.com' }];
    return (
      <EmptyState title="No records yet" command={curl({ method: 'POST', path: `${path}/push`, json })}>
        Its records are pushed: send some, and they can be read at once.
      </EmptyState>
    );
  }
  if (currentJob !== null) {
    return (
      <EmptyState
        title="Its first run has not ended"
        action={
          <PageLink to="/runs/$jobId" params={{ jobId: currentJob.id }}>
            Look at the run
          </PageLink>
        }
      >
        Its records appear here once it has.
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No records yet" command={curl({ method: 'POST', path: `${path}/queue` })}>
      They come with its first successful run.
    </EmptyState>
  );
}
