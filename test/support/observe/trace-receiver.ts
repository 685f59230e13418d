/** A receiver of traces, in place of an OpenTelemetry collector. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  /** Empty for the first span of a trace. */
  parentSpanId: string;
  name: string;
  /** OTLP: 1 internal, 2 server, 3 client, 5 consumer. */
  kind: number;
  startMs: number;
  endMs: number;
  isError: boolean;
  attributes: Record<string, unknown>;
  /** Attributes of the service's process. */
  resource: Record<string, unknown>;
}

export interface TraceReceiver {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  url: string;
  spans: ReceivedSpan[];
  /** The bodies of all requests. */
  bodies: string[];
  /** The headers of the last request. */
  headers(): NodeJS.Dict<string | string[]>;
  /** Sets the status of further responses; default: 200. */
  answer(status: number): void;
  /** Resolves with the first result that is not undefined. `look` is called again when spans arrive. */
  until<T>(look: (spans: readonly ReceivedSpan[]) => T | undefined, what: string): Promise<T>;
  stop(): Promise<void>;
}

const WITHIN_MS = 60_000;

type Value = Record<string, unknown>;
interface Attribute {
  key: string;
  value: Value;
}

export async function startTraceReceiver(): Promise<TraceReceiver> {
  const spans: ReceivedSpan[] = [];
  const bodies: string[] = [];
  const waiting = new Set<() => void>();
  let headers: NodeJS.Dict<string | string[]> = {};
  let status = 200;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => {});
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      bodies.push(body);
      headers = request.headers;
      if (status === 200) spans.push(...spansOf(body));
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
      for (const check of waiting) check();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    headers: () => headers,
    answer(next) {
      status = next;
    },
    until(look, what) {
      return new Promise((resolve, reject) => {
        const check = () => {
          const found = look(spans);
          if (found === undefined) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve(found);
        };
        const timer = setTimeout(() => {
          waiting.delete(check);
          const names = spans.map(({ name }) => name).join(', ');
          reject(new Error(`${what} did not come within ${WITHIN_MS} ms; there are: ${names}`));
        }, WITHIN_MS);
        waiting.add(check);
        check();
      });
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The spans of an ExportTraceServiceRequest in JSON. */
function spansOf(body: string): ReceivedSpan[] {
  const { resourceSpans } = JSON.parse(body) as {
    resourceSpans: {
      resource: { attributes: Attribute[] };
      scopeSpans: { spans: (Value & { attributes: Attribute[]; status?: { code?: number } })[] }[];
    }[];
  };
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: String(span.traceId),
        spanId: String(span.spanId),
        parentSpanId: String(span.parentSpanId ?? ''),
        name: String(span.name),
        kind: Number(span.kind),
        startMs: Number(BigInt(String(span.startTimeUnixNano)) / 1_000_000n),
        endMs: Number(BigInt(String(span.endTimeUnixNano)) / 1_000_000n),
        isError: span.status?.code === 2,
        attributes: plain(span.attributes),
        resource: plain(resource.attributes),
      })),
    ),
  );
}

function plain(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const [kind = '', held] = Object.entries(value)[0] ?? [];
      return [key, kind === 'intValue' ? Number(held) : held];
    }),
  );
}
