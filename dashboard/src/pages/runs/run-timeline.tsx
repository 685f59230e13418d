/** The timeline of a run, drawn. */
import { Box, Group, Text } from '@mantine/core';
import { useQueries, useQuery } from '@tanstack/react-query';
import type { Job } from 'flowhook-client';
import { PageLink } from '../../parts/link.tsx';
import { useNow } from '../../parts/now.ts';
import { duration } from '../../parts/quantity.ts';
import { StateBadge, stateColor } from '../../parts/state-badge.tsx';
import { eventDeliveriesQuery } from '../../queries/events.ts';
import { jobEventsQuery } from '../../queries/jobs.ts';
import { useSession } from '../../session.tsx';
import styles from './run-timeline.module.css';
import { axisOf, type Bar, barsOf, placeOf } from './timeline.ts';

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
  const axis = axisOf(bars, nowMs);
  return (
    <ol className={styles.bars}>
      {bars.map((bar) => {
        const { left, width } = placeOf(bar, axis, nowMs);
        const took = duration(Math.max(0, (bar.toMs ?? nowMs) - bar.fromMs));
        return (
          <li key={bar.key} className={styles.row}>
            <Box className={styles.label}>
              {bar.deliveryId === undefined ? (
                bar.label
              ) : (
                <PageLink to="/deliveries/$deliveryId" params={{ deliveryId: bar.deliveryId }} truncate>
                  {bar.label}
                </PageLink>
              )}
            </Box>
            <div className={styles.track} aria-hidden="true">
              <div
                className={styles.bar}
                style={{ left: `${left}%`, width: `${width}%`, background: stateColor(bar.state) }}
              />
            </div>
            <Group gap="xs" wrap="nowrap" className={styles.outcome} title={bar.outcome}>
              <span className="numbers">{took}</span>
              {bar.deliveryId === undefined ? (
                <Text span size="xs" c="dimmed" truncate>
                  {bar.outcome}
                </Text>
              ) : (
                <StateBadge state={bar.state} />
              )}
            </Group>
          </li>
        );
      })}
    </ol>
  );
}
