/** Bar charts in plain SVG: a chart library would add half the weight of the whole dashboard. */
import { Box, Group, Paper, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Usage, UsageBucket } from '../../../client/src/flowhook-client.ts';
import styles from './charts.module.css';
import { count, duration, placeOf, type Span, useZone } from './format.ts';
import { type State, stateColor } from './state-badge.tsx';

const HEIGHT_PX = 120;

type Series = [name: string, state: State, countOf: (hour: UsageBucket) => number | null | undefined];

/** The charts of the last 24 hours, with their series from the bottom up. */
const CHARTS = {
  Runs: [
    ['Finished', 'finished', ({ jobs }) => jobs?.finished],
    ['Failed', 'failed', ({ jobs }) => jobs?.failed],
    ['Canceled', 'canceled', ({ jobs }) => jobs?.canceled],
  ],
  Deliveries: [
    ['Delivered', 'delivered', ({ deliveries }) => deliveries?.delivered],
    ['Failed attempts', 'failing', ({ deliveries }) => deliveries?.failedAttempts],
    ['Given up', 'dead', ({ deliveries }) => deliveries?.dead],
  ],
  'Response time': [['95th percentile', 'running', ({ deliveries }) => deliveries?.latencyMs.p95]],
} satisfies Record<string, Series[]>;

const HOUR = {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
} as const;

/** Stacked bars with a legend. The numbers are in the bars' tooltips, and in a table for screen readers. */
export function DayChart({ of, usage }: { of: keyof typeof CHARTS; usage: Usage | undefined }) {
  const zone = useZone();
  const label = `${of}, last 24 hours`;
  // Percentiles cannot be added up.
  const hasSum = of !== 'Response time';
  const format = hasSum ? count : duration;
  const all: Series[] = CHARTS[of];
  const series = all.map(([name, state]) => ({ name, color: stateColor(state) }));
  const bars = (usage?.buckets ?? []).map((hour) => ({
    from: hour.start,
    values: all.map(([, , countOf]) => countOf(hour) ?? 0),
  }));
  const most = Math.max(...bars.map(({ values }) => sum(values)), 0);
  const scale = most === 0 ? 1 : most;
  const timeZone = zone === 'utc' ? 'UTC' : undefined;
  const moment = (at: string | undefined) =>
    at === undefined ? '' : new Date(at).toLocaleString('en-US', { ...HOUR, timeZone });
  return (
    <Paper component="section" aria-label={label}>
      <Title order={2} size="h4" mb="sm">
        {label}
      </Title>
      <Box component="figure" m={0}>
        <Text size="xs" c="dimmed" aria-hidden="true" className="numbers">
          {format(most)}
        </Text>
        <Box style={{ borderBlock: '1px solid var(--mantine-color-default-border)' }}>
          <svg
            viewBox={`0 0 ${Math.max(1, bars.length)} 1`}
            width="100%"
            height={HEIGHT_PX}
            preserveAspectRatio="none"
            aria-hidden="true"
            display="block"
          >
            {bars.map(({ from, values }, index) => (
              <g key={from}>
                <rect x={index} y={0} width={1} height={1} fill="transparent" />
                {series.map(({ name, color }, at) => {
                  const size = (values[at] ?? 0) / scale;
                  const below = sum(values.slice(0, at)) / scale;
                  return (
                    <rect
                      key={name}
                      x={index + 0.1}
                      y={1 - below - size}
                      width={0.8}
                      height={size}
                      fill={color}
                    />
                  );
                })}
                <title>
                  {[
                    moment(from),
                    ...series.map(({ name }, at) => `${name}: ${format(values[at] ?? 0)}`),
                  ].join('\n')}
                </title>
              </g>
            ))}
          </svg>
        </Box>
        <Group justify="space-between" aria-hidden="true">
          <Text size="xs" c="dimmed" className="numbers">
            {moment(bars[0]?.from)}
          </Text>
          <Text size="xs" c="dimmed" className="numbers">
            {moment(bars.at(-1)?.from)}
          </Text>
        </Group>
        <Group component="figcaption" gap="md" mt={4}>
          <span className="visually-hidden">{label}</span>
          {series.map(({ name, color }, at) => (
            <Group key={name} gap={6}>
              <Box w={10} h={10} bg={color} />
              <Text size="xs">
                {name} {hasSum && <b>{format(sum(bars.map(({ values }) => values[at] ?? 0)))}</b>}
              </Text>
            </Group>
          ))}
        </Group>
        {/* Hidden by a wrapper, because a table ignores a width that is smaller than its content. */}
        <div className="visually-hidden">
          <table>
            <caption>{label}</caption>
            <thead>
              <tr>
                <th scope="col">Hour</th>
                {series.map(({ name }) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {bars.map(({ from, values }) => (
                <tr key={from}>
                  <th scope="row">{moment(from)}</th>
                  {series.map(({ name }, at) => (
                    <td key={name}>{format(values[at] ?? 0)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Box>
    </Paper>
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

interface SmallBar {
  key: string;
  title?: string;
  /** From the bottom up; as shares of the height. */
  parts: readonly { share: number; color: string }[];
}

/** Small bars for a table row, aligned to the right. @param props.places how many bars there is room for */
export function SmallBars(props: {
  label: string;
  bars: readonly SmallBar[];
  places?: number;
  widthPx: number;
}) {
  const { label, bars, places = bars.length, widthPx } = props;
  const stepPx = widthPx + Math.ceil(widthPx / 3);
  return (
    <svg width={places * stepPx} height={SMALL_PX} role="img" aria-label={label}>
      {bars.map(({ key, title, parts }, index) => (
        <g key={key}>
          {title !== undefined && <title>{title}</title>}
          {parts.map(({ share, color }, at) => (
            <rect
              key={color}
              x={(places - bars.length + index) * stepPx}
              y={SMALL_PX * (1 - sum(parts.slice(0, at + 1).map((part) => part.share)))}
              width={widthPx}
              height={SMALL_PX * share}
              fill={color}
            />
          ))}
        </g>
      ))}
    </svg>
  );
}

const SMALL_PX = 20;

/** Rows with a name, a bar from start to end on a shared axis, and a remark. */
export function AxisBars(props: {
  label?: string;
  axis: Span;
  rows: readonly (Span & { key: string; name: ReactNode; color: string; remark: ReactNode })[];
}) {
  const { label, axis, rows } = props;
  return (
    <ol className={styles.bars} aria-label={label}>
      {rows.map(({ key, name, color, remark, ...span }) => {
        const { left, width } = placeOf(span, axis);
        return (
          <li key={key} className={styles.row}>
            <div className={styles.name}>{name}</div>
            <div className={styles.track} aria-hidden="true">
              <div
                className={styles.bar}
                style={{ left: `${left}%`, width: `${width}%`, background: color }}
              />
            </div>
            <div className={styles.remark}>{remark}</div>
          </li>
        );
      })}
    </ol>
  );
}
