/** Scrapes a service like Prometheus. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Family, parseExposition } from './prometheus-text.ts';

export type Families = Map<string, Family>;

/** @param base the URL of the service, such as `http://127.0.0.1:8080` */
export async function scrape(base: string, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(`${base}/metrics`, { headers });
  if (response.status !== 200) throw new Error(`/metrics returns ${response.status}`);
  return response.text();
}

/** Scrapes until the metrics satisfy a condition, at most for the timeout of the test. */
export async function scrapeUntil(
  base: string,
  condition: (families: Families) => boolean,
): Promise<{ text: string; families: Families }> {
  for (;;) {
    const text = await scrape(base);
    const families = parseExposition(text);
    if (condition(families)) return { text, families };
    await pause(50);
  }
}

/** The sum of all samples with this name and these labels; undefined if there are none. */
export function amountOf(
  families: Families,
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''));
  const values = (family?.samples ?? [])
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .map(({ value }) => value);
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
}
