/** Live notifications of what changes in a team, for user interfaces. */
import { linesOf } from './lines.ts';
import type { CallOptions, Transport } from './transport.ts';

/** Something may have changed: read it again. */
export interface News {
  kind: 'jobs' | 'workflows' | 'versions' | 'webhooks' | 'deliveries' | 'inspectors' | 'keys';
  /** What has changed; for `versions`, ids of workflows. null: any. */
  ids: string[] | null;
  /** Where to continue after this one: `after` of a later call; null within a change. */
  sequence: number | null;
}

export interface StreamOptions extends CallOptions {
  /** The `sequence` of the last news that are known. */
  after?: number | undefined;
  /** Called once when the stream is open: nothing is missed from then on, and `sequence` is where to continue. */
  onOpen?: ((sequence: number) => void) | undefined;
}

/**
 * News from now on, or after a position, until the service or the signal ends the stream: then call it again with the
 * last `sequence`.
 */
export async function* newsOf(
  transport: Transport,
  { after, onOpen, ...options }: StreamOptions,
): AsyncGenerator<News> {
  const response = await transport.stream({
    ...options,
    path: '/v1/stream',
    headers: { 'last-event-id': after === undefined ? undefined : String(after) },
  });
  let fields: Record<string, string> = {};
  const patienceMs = transport.patienceMs(options);
  for await (const line of linesOf(response, { patienceMs, signal: options.signal })) {
    const [, name, value = ''] = /^(\w+): ?(.*?)\r?$/.exec(line) ?? [];
    if (name !== undefined) fields[name] = value;
    if (line !== '' && line !== '\r') continue;
    if (fields.event === 'hello') onOpen?.(Number(fields.id));
    if (fields.event === 'invalidate' && fields.data !== undefined) {
      yield { ...JSON.parse(fields.data), sequence: fields.id === undefined ? null : Number(fields.id) };
    }
    fields = {};
  }
}
