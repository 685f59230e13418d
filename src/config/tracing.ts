/**
 * Where traces are sent: read from OpenTelemetry's standard variables, which other services on the machine use as well.
 */
import type { TracingSettings } from '../observe/tracing.ts';
import { VERSION } from '../std/version.ts';

type Variable = [name: string, value: string | undefined];

const SAMPLERS = [
  'parentbased_always_on',
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/**
 * Reads `OTEL_*`. Returns null when there is no endpoint or tracing is off.
 *
 * @param mistakes receives a sentence for each invalid variable
 */
export function readTracing(
  environment: Readonly<Record<string, string | undefined>>,
  mistakes: string[],
): TracingSettings | null {
  const read = (name: string): string | undefined => environment[name]?.trim() || undefined;
  const named = (name: string): Variable => [name, read(name)];
  /** Reads the variable for traces. If it is not set, reads the variable for all signals. */
  const readOtlp = (name: string): Variable => {
    const own = named(`OTEL_EXPORTER_OTLP_TRACES_${name}`);
    return own[1] === undefined ? named(`OTEL_EXPORTER_OTLP_${name}`) : own;
  };
  /** The first word is the default. */
  const among = <T extends string>([variable, value]: Variable, words: readonly [T, ...T[]]): T => {
    const found = words.find((word) => word === (value?.toLowerCase() ?? words[0]));
    if (found === undefined)
      mistakes.push(`${variable} must be one of ${words.join(', ')}, found "${value}"`);
    return found ?? words[0];
  };
  const whole = ([variable, value]: Variable, initial: number): number => {
    if (value === undefined || /^[1-9]\d{0,8}$/.test(value)) return Number(value ?? initial);
    mistakes.push(`${variable} must be a whole number from 1, found "${value}"`);
    return initial;
  };

  const [variable, endpoint] = readOtlp('ENDPOINT');
  if (endpoint === undefined || read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return null;
  if (among(named('OTEL_TRACES_EXPORTER'), ['otlp', 'none']) === 'none') return null;
  // `http/protobuf` is accepted because collectors take JSON on the same port. gRPC is refused because it uses another
  // port.
  among(readOtlp('PROTOCOL'), ['http/json', 'http/protobuf']);
  if (!/^https?:\/\/./.test(endpoint) || !URL.canParse(endpoint)) {
    mistakes.push(`${variable} must be an http:// or https:// URL, such as http://127.0.0.1:4318`);
    return null;
  }
  const isWhole = variable.includes('_TRACES_');
  const service = read('OTEL_SERVICE_NAME');
  const sampler = among(named('OTEL_TRACES_SAMPLER'), SAMPLERS);
  return {
    url: isWhole ? endpoint : `${endpoint.replace(/\/+$/, '')}/v1/traces`,
    headers: {
      ...pairs(named('OTEL_EXPORTER_OTLP_HEADERS'), mistakes),
      ...pairs(named('OTEL_EXPORTER_OTLP_TRACES_HEADERS'), mistakes),
    },
    timeoutMs: whole(readOtlp('TIMEOUT'), 10_000),
    compression: among(readOtlp('COMPRESSION'), ['none', 'gzip']),
    share: shareOf(sampler, read('OTEL_TRACES_SAMPLER_ARG'), mistakes),
    heedsParent: sampler.startsWith('parentbased_'),
    resource: {
      'service.name': 'flowhook',
      'service.version': VERSION,
      ...pairs(named('OTEL_RESOURCE_ATTRIBUTES'), mistakes),
      ...(service === undefined ? {} : { 'service.name': service }),
    },
    delayMs: whole(named('OTEL_BSP_SCHEDULE_DELAY'), 5_000),
    maxSpans: whole(named('OTEL_BSP_MAX_QUEUE_SIZE'), 2_048),
  };
}

function shareOf(sampler: string, argument: string | undefined, mistakes: string[]): number {
  if (!sampler.endsWith('traceidratio')) return sampler.endsWith('always_on') ? 1 : 0;
  const share = Number(argument ?? '1');
  if (share >= 0 && share <= 1) return share;
  mistakes.push(`OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, found "${argument}"`);
  return 1;
}

/**
 * Parses a list such as `key=value,key=value` with percent-encoded values. Errors do not quote the list, because a
 * value may be an API key.
 */
function pairs([variable, text = '']: Variable, mistakes: string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const pair of text.split(',').filter((one) => one.trim() !== '')) {
    const at = pair.indexOf('=');
    const name = pair.slice(0, Math.max(0, at)).trim();
    const value = decoded(pair.slice(at + 1).trim());
    if (name === '' || value === undefined) {
      mistakes.push(`${variable} must be a list such as key=value,key=value with percent-encoded values`);
      return {};
    }
    found[name] = value;
  }
  return found;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
