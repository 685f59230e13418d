#!/usr/bin/env node
/**
 * Posts the outcome of jobs to a Slack channel: verifies each delivery of Flowhook, and posts a line to an incoming webhook
 * of Slack. Needs Node 22 or newer, and no dependencies.
 *
 *     SLACK_URL=https://hooks.slack.com/services/… WEBHOOK_SECRET=whsec_… node receiver.mts
 *
 * PORT (9000), HOST (127.0.0.1), DASHBOARD: the address of the service, for a link to the job.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

const { SLACK_URL, WEBHOOK_SECRET, DASHBOARD, HOST = '127.0.0.1', PORT = '9000' } = process.env;
if (!SLACK_URL || !WEBHOOK_SECRET) {
  process.stderr.write(
    'Set SLACK_URL, and WEBHOOK_SECRET to what `flowhook webhooks secret WEBHOOK` prints.\n',
  );
  process.exit(2);
}
const slackUrl = SLACK_URL;
const secret = Buffer.from(WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64');
const MAX_BODY_BYTES = 1024 * 1024;
const TOLERANCE_S = 5 * 60;
/** Posts by event id, finished or in progress. They are lost on a restart, so a retry may then be posted twice. */
const posts = new Map<string, Promise<Failure | undefined>>();

interface Event {
  type: string;
  workflowId: string;
  jobId?: string;
  data: {
    error?: string | null;
    records?: { total: number; added: number; changed: number; removed: number };
  };
}

const server = createServer(async (request, response) => {
  const body = await read(request).catch(() => undefined);
  if (body === undefined) return response.writeHead(413).end();
  if (!isSigned(request, body)) return response.writeHead(401).end('the signature does not match');
  const id = String(request.headers['webhook-id']);
  const posting = posts.get(id) ?? post(JSON.parse(body.toString()) as Event);
  posts.set(id, posting);
  if (posts.size > 10_000) posts.delete([...posts.keys()][0] as string);
  const failure = await posting;
  if (failure !== undefined) {
    posts.delete(id);
    // Flowhook retries, after the time that Slack asks for.
    return response.writeHead(503, failure.headers).end(failure.message);
  }
  response.writeHead(204).end();
});
server.listen(Number(PORT), HOST, () => {
  process.stdout.write(`receiver listening on http://${HOST}:${(server.address() as AddressInfo).port}\n`);
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(0));

/** The line for the channel; undefined for an event that is not interesting. */
function sentence({ type, workflowId, jobId, data }: Event): string | undefined {
  const name = `*${escaped(workflowId)}*`;
  const link = DASHBOARD && jobId ? ` <${DASHBOARD}/ui/jobs/${jobId}|Show the job>` : '';
  const { records } = data;
  switch (type) {
    case 'workflow_failed':
      return `:x: ${name} failed: ${escaped(data.error ?? 'no reason is known')}${link}`;
    case 'workflow_canceled':
      return `:no_entry_sign: ${name} was canceled${link}`;
    case 'workflow_data_change':
      if (records === undefined) return `:arrows_counterclockwise: ${name} has new data${link}`;
      return `:arrows_counterclockwise: ${name}: ${records.added} added, ${records.changed} changed, ${records.removed} removed, ${records.total} in all${link}`;
    case 'workflow_finished':
      return `:white_check_mark: ${name} finished${link}`;
    case 'webhook_test':
      return ':wave: Flowhook can reach this channel';
    default:
      return undefined;
  }
}

/** Records and errors are untrusted: Slack must not interpret a `<!channel>` or a link in them. */
function escaped(text: string): string {
  return text.slice(0, 1000).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

interface Failure {
  message: string;
  headers: Record<string, string>;
}

async function post(event: Event): Promise<Failure | undefined> {
  const text = sentence(event);
  if (text === undefined) return undefined;
  try {
    const response = await fetch(slackUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text }),
      redirect: 'error',
      // Flowhook waits 15 s for a response.
      signal: AbortSignal.timeout(10_000),
    });
    if (response.ok) return undefined;
    const after = response.headers.get('retry-after');
    return {
      message: `Slack returned ${response.status}`,
      headers: after === null ? {} : { 'retry-after': after },
    };
  } catch {
    // Not the error itself: it may contain the URL, and anyone who knows the URL can post.
    return { message: 'Slack could not be reached', headers: {} };
  }
}

/** Standard Webhooks, `v1`: HMAC-SHA256 over the id, the time and the unparsed body. */
function isSigned(request: IncomingMessage, body: Buffer): boolean {
  const {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures,
  } = request.headers;
  if (!id || typeof signatures !== 'string') return false;
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_S)) return false;
  const expected = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest();
  return signatures.split(' ').some((one) => {
    const [version, text = ''] = one.split(',', 2);
    const given = Buffer.from(text, 'base64');
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

async function read(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new Error('too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
