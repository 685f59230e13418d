/** Counts over time as stacked bars. Our own lines of SVG: the usual libraries weigh half as much as the dashboard. */
import { Box, Group, Text } from '@mantine/core';
import { count } from './quantity.ts';
import { absolute, useTimeStyle } from './times.ts';

export interface BarSeries {
  name: string;
  /** Of CSS: `stateColor('failed')`. */
  color: string;
}

export interface BarChartProps {
  /** What it shows, such as `Runs of the last 24 hours`. */
  label: string;
  /** From the bottom up. */
  series: readonly BarSeries[];
  /** Oldest first; `values` in the order of the series. */
  bars: readonly { from: string; values: readonly number[] }[];
  /** Pixels. */
  height?: number;
  /** How a value is written: `bytes`, `duration`; grouped digits unless told. */
  format?: (value: number) => string;
  /** Of values that cannot be added up, such as percentiles, the legend tells no sums. */
  hasNoSum?: boolean;
}

/** Stacked bars with their legend. The numbers stand in the titles of the bars, and in a table for screen readers. */
export function BarChart({
  label,
  series,
  bars,
  height = 120,
  format = count,
  hasNoSum = false,
}: BarChartProps) {
  const zone = useTimeStyle() === 'utc' ? 'utc' : 'local';
  const most = Math.max(...bars.map(({ values }) => sum(values)), 0);
  const scale = most === 0 ? 1 : most;
  const moment = (at: string | undefined) => (at === undefined ? '' : absolute(at, zone).slice(5, 16));
  return (
    <Box component="figure" m={0}>
      <Text size="xs" c="dimmed" aria-hidden="true" className="numbers">
        {format(most)}
      </Text>
      <Box style={{ borderBlock: '1px solid var(--mantine-color-default-border)' }}>
        <svg
          viewBox={`0 0 ${Math.max(1, bars.length)} 1`}
          width="100%"
          height={height}
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
                {[moment(from), ...series.map(({ name }, at) => `${name}: ${format(values[at] ?? 0)}`)].join(
                  '\n',
                )}
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
              {name} {!hasNoSum && <b>{format(sum(bars.map(({ values }) => values[at] ?? 0)))}</b>}
            </Text>
          </Group>
        ))}
      </Group>
      {/* A table by itself is as wide as it needs, whatever one says. */}
      <div className="visually-hidden">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th scope="col">From</th>
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
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
