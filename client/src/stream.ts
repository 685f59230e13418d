/** Live notifications of changes in a team, for user interfaces. */
import { linesOf } from './lines.ts';
import type { CallOptions, Transport } from './transport.ts';

/** A notification that something may have changed: read it again. */
export interface News {
  kind: 'jobs' | 'workflows' | 'versions' | 'webhooks' | 'deliveries' | 'inspectors' | 'keys';
  /** IDs of what may have changed; for `versions`, IDs of workflows. null if any may have changed. */
  ids: string[] | null;
  /**
   * The value of `after` for continuing after this notification; null if more notifications of the same change follow.
   */
  sequence: number | null;
}

export interface StreamOptions extends CallOptions {
  /** The `sequence` of the last notification received. */
  after?: number | undefined;
  /** Called once when the stream is open. No later change is missed; pass `sequence` as `after` to continue. */
  onOpen?: ((sequence: number) => void) | undefined;
}

/**
 * Notifications of changes until the service or the signal ends the stream. To continue, call again with the last
 * `sequence`.
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
