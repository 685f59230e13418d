/** Reads server-sent events like a browser. */

/** One message. Without its own id it has the id of the previous message. */
export interface Message {
  event: string;
  id: string;
  data: unknown;
}

export interface Source {
  status: number;
  /** Every message so far. */
  messages: readonly Message[];
  /** Resolves with the first matching message. Rejects after 90 s, or when the stream ends. */
  until(holds: (message: Message) => boolean, what: string): Promise<Message>;
  /** Resolves when the service has ended the stream. */
  ended: Promise<void>;
  close(): void;
}

export async function openSource(
  url: string,
  options: { key: string; lastEventId?: string },
): Promise<Source> {
  const abort = new AbortController();
  const response = await fetch(url, {
    headers: {
      'x-api-key': options.key,
      accept: 'text/event-stream',
      ...(options.lastEventId === undefined ? {} : { 'last-event-id': options.lastEventId }),
    },
    signal: abort.signal,
  });
  const messages: Message[] = [];
  const waiting = new Set<() => void>();
  const read = async () => {
    let text = '';
    let id = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const fields = new Map(block.split('\n').map((line) => fieldOf(line)));
        id = fields.get('id') ?? id;
        const data = fields.get('data');
        if (data === undefined) continue;
        messages.push({ event: fields.get('event') ?? 'message', id, data: JSON.parse(data) });
      }
      for (const look of waiting) look();
    }
  };
  const ended = read().catch(() => {});
  return {
    status: response.status,
    messages,
    ended,
    close: () => abort.abort(),
    until: (holds, what) =>
      new Promise((resolve, reject) => {
        const fail = (how: string) =>
          reject(new Error(`${how} without ${what}. Messages: ${JSON.stringify(messages)}`));
        const timer = setTimeout(() => fail('90 s passed'), 90_000);
        const look = () => {
          const found = messages.find(holds);
          if (found === undefined) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
        void ended.then(() => {
          clearTimeout(timer);
          if (!messages.some(holds)) fail('The stream ended');
        });
      }),
  };
}

function fieldOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon), line.slice(colon + 1).trimStart()];
}
