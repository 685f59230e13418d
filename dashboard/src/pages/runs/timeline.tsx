/** The timeline of a run as bars. */
import { Group } from '@mantine/core';
import { useQueries, useQuery } from '@tanstack/react-query';
import type { Job } from '../../../../client/src/flowhook-client.ts';
import { AxisBars } from '../../parts/charts.tsx';
import { duration } from '../../parts/format.ts';
import { PageLink } from '../../parts/page.tsx';
import { StateBadge, stateColor } from '../../parts/state-badge.tsx';
import { useNow } from '../../parts/values.tsx';
import { eventDeliveriesQuery } from '../../queries/events.ts';
import { jobEventsQuery } from '../../queries/jobs.ts';
import { useSession } from '../../session.tsx';
import { axisOf, type Bar, barsOf } from './timeline.ts';

export function RunTimeline({ job }: { job: Job }) {
  const { can } = useSession();
  const { data: events = [] } = useQuery(jobEventsQuery(job.id));
  const found = useQueries({
    queries: events.map(({ id }) => ({ ...eventDeliveriesQuery(id), enabled: can('webhooks') })),
  });
  const deliveries = new Map(events.map(({ id }, index) => [id, found[index]?.data ?? []]));
  const bars = barsOf(job, events, deliveries);
  return bars.some(({ toMs }) => toMs === null) ? <Growing bars={bars} /> : <Drawn bars={bars} nowMs={0} />;
}

function Growing({ bars }: { bars: readonly Bar[] }) {
  return <Drawn bars={bars} nowMs={useNow()} />;
}

function Drawn({ bars, nowMs }: { bars: readonly Bar[]; nowMs: number }) {
  return (
    <AxisBars
      axis={axisOf(bars, nowMs)}
      rows={bars.map(({ key, label, state, fromMs, toMs, deliveryId, message }) => ({
        key,
        fromMs,
        toMs: toMs ?? nowMs,
        color: stateColor(state),
        name:
          deliveryId === undefined ? (
            label
          ) : (
            <PageLink to="/deliveries/$deliveryId" params={{ deliveryId }} truncate>
              {label}
            </PageLink>
          ),
        remark: (
          <Group gap="xs" wrap="nowrap" title={message}>
            <span className="numbers">{duration(Math.max(0, (toMs ?? nowMs) - fromMs))}</span>
            {state !== 'queued' && <StateBadge state={state} />}
          </Group>
        ),
      }))}
    />
  );
}
