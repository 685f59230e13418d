/** A strict parser for Prometheus's text format 0.0.4: every violation is an error that names the line. */

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** All samples of a metric; for a histogram its buckets, sum and count. */
export interface Family {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  samples: Sample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/;
const OF_HISTOGRAM = /_(bucket|sum|count)$/;

/** @throws Error that names the line and the problem */
export function parseExposition(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  let current: Family | undefined;
  if (!text.endsWith('\n')) throw new Error('The last line does not end');
  for (const [at, line] of text.slice(0, -1).split('\n').entries()) {
    const refuse = (why: string): never => {
      throw new Error(`Line ${at + 1} ${why}: ${line}`);
    };
    if (line === '') continue;
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      if (!NAME.test(name)) refuse('has an invalid name');
      if (families.has(name)) refuse('starts a metric for the second time');
      if (rest.trim() === '') refuse('has an empty text');
      current = { name, type: 'gauge', help: rest, samples: [] };
      families.set(name, current);
    } else if (keyword === 'TYPE') {
      if (current === undefined || current.name !== name) return refuse('belongs to another metric');
      if (current.samples.length > 0) refuse('comes after values');
      if (!/^(counter|gauge|histogram)$/.test(rest)) refuse('has an unexpected type');
      current.type = rest as Family['type'];
    } else if (line.startsWith('#')) refuse('is a comment');
    else {
      const [, full = '', labels = '', value = ''] = SAMPLE.exec(line) ?? refuse('is not a sample');
      if (current === undefined) return refuse('has no HELP and TYPE');
      const base = current.type === 'histogram' ? full.replace(OF_HISTOGRAM, '') : full;
      if (base !== current.name) refuse('belongs to another metric');
      current.samples.push({
        name: full,
        labels: readLabels(labels, refuse),
        value: readValue(value, refuse),
      });
    }
  }
  for (const family of families.values()) checkFamily(family);
  return families;
}

function readLabels(text: string, refuse: (why: string) => never): Record<string, string> {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ''; ) {
    const [whole = '', name = '', value = ''] = LABEL.exec(rest) ?? refuse('has invalid labels');
    if (Object.hasOwn(labels, name)) refuse(`has the label ${name} twice`);
    labels[name] = value.replace(/\\(.)/g, (_, one: string) => (one === 'n' ? '\n' : one));
    rest = rest.slice(whole.length);
  }
  return labels;
}

function readValue(text: string, refuse: (why: string) => never): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  if (text === '-Inf') return Number.NEGATIVE_INFINITY;
  if (text === 'NaN') return Number.NaN;
  return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)
    ? Number(text)
    : refuse('has a value that is not a number');
}

function checkFamily({ name, type, samples }: Family): void {
  const keys = samples.map(
    (sample) => `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`,
  );
  const twice = keys.find((key, at) => keys.indexOf(key) !== at);
  if (twice !== undefined) throw new Error(`${twice} appears twice`);
  if (type === 'counter') {
    if (!name.endsWith('_total')) throw new Error(`The counter ${name} does not end with _total`);
    if (samples.some(({ value }) => !(value >= 0))) throw new Error(`The counter ${name} is below 0`);
  } else if (name.endsWith('_total')) throw new Error(`${name} is not a counter`);
  if (type === 'histogram') checkHistogram(name, samples);
}

function checkHistogram(name: string, samples: readonly Sample[]): void {
  const series = Map.groupBy(samples, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels));
  for (const [labels, own] of series) {
    const buckets = own.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels: { le = '' } }) => readValue(le, () => Number.NaN as never));
    const rises = (values: readonly number[], isMore: (a: number, b: number) => boolean) =>
      values.every((value, at) => at === 0 || isMore(value, values[at - 1] as number));
    const count = own.find((sample) => sample.name === `${name}_count`)?.value;
    const hasSum = own.some((sample) => sample.name === `${name}_sum`);
    const isRight =
      bounds.at(-1) === Number.POSITIVE_INFINITY &&
      rises(bounds, (a, b) => a > b) &&
      rises(
        buckets.map(({ value }) => value),
        (a, b) => a >= b,
      ) &&
      buckets.at(-1)?.value === count &&
      hasSum;
    if (!isRight) throw new Error(`The histogram ${name}${labels} is invalid`);
  }
}
