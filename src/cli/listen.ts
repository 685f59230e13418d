/** `flowhook webhooks listen`: forwards the events of a server to a local address, for development. */
import { randomBytes } from 'node:crypto';
import { type Command, Option } from 'commander';
import { canonicalEvent, type EventType } from '../model/event.ts';
import { urlMistake } from '../model/webhook.ts';
import { serviceUrl } from '../net/host.ts';
import { durationWords } from '../std/amounts.ts';
import { UsageError } from './exit.ts';
import { followEvents, type Remote, readEvent, type WireEvent } from './follow-events.ts';
import { type Forwarded, forwardEvent } from './forward-event.ts';
import { print } from './output.ts';
import { keyOf, serverOf } from './remote.ts';
import { say, warn } from './say.ts';
import { configOf, type Options } from './settings.ts';
import { untilInterrupted } from './until-interrupted.ts';
import { eventNames } from './webhook-flags.ts';

const CTRL_C = '\u0003';

export function addListen(webhooks: Command): void {
  webhooks
    .command('listen')
    .description('forward the events of a server to a local address, signed, until Ctrl-C')
    .requiredOption('--forward-to <url>', 'where your receiver listens: http://127.0.0.1:9000/hook')
    .option('--url <url>', 'the server (default: FLOWHOOK_URL, else the address and port of the settings)')
    .addOption(new Option('--server <url>', 'the same as --url').hideHelp())
    .option('--key <key>', 'an API key with the scope read (default: the variable FLOWHOOK_KEY)')
    .option('--profile <name>', 'a server saved by `flowhook login` (or FLOWHOOK_PROFILE)')
    .option('--workflow <id>', 'only events of this workflow')
    .option('--events <names>', 'only these events, comma-separated (default: every event)')
    .option('--secret <whsec>', 'sign with this secret (default: a new one, printed at the start)')
    .option('--print', 'print the body of each event')
    .option('--resend <event>', 'forward only this event, once')
    .option('--json', 'print JSON, one object per line')
    .addHelpText(
      'after',
      '\nOn a terminal the key r sends the last event again. An event that your receiver refuses is not retried.\n' +
        'While the server is unreachable this waits, then continues with what has happened meanwhile.\n' +
        'Exit codes: 0 ended by Ctrl-C (with --resend: delivered), 1 failed, 3 no such event, 4 the key was refused.',
    )
    .action(listen);
}

async function listen(options: Options): Promise<void> {
  const forwardTo = urlFrom('--forward-to', options.forwardTo);
  const remote = remoteFrom(options);
  const { secret, key } = secretFrom(options.secret);
  const isWanted = filterFrom(options);
  const forward = async (event: WireEvent) => {
    const result = await forwardEvent(event, { url: forwardTo, key });
    report(event, result, options);
    return result;
  };
  // Not by `say`: even with --quiet, the receiver needs the secret.
  warn(`Signing secret: ${secret}`);

  if (options.resend !== undefined) {
    const { isDelivered } = await forward(await readEvent(remote, String(options.resend)));
    process.exitCode = isDelivered ? 0 : 1;
    return;
  }

  const interrupted = untilInterrupted({ isEnd: true });
  let last: WireEvent | undefined;
  const leaveKeys = listenForKeys({
    resend: () => (last === undefined ? say('There is nothing to send again yet') : void forward(last)),
    end: () => process.kill(process.pid, 'SIGINT'),
  });
  try {
    const events = followEvents(remote, {
      signal: interrupted.signal,
      say,
      onReady: () =>
        say(
          `Listening for events of ${remote.server}, forwarding to ${forwardTo}. Ctrl-C ends${process.stdin.isTTY ? ', r sends the last one again' : ''}`,
        ),
    });
    for await (const event of events) {
      if (!isWanted(event)) continue;
      last = event;
      await forward(event);
    }
  } finally {
    leaveKeys();
    interrupted.clear();
  }
}

function report(event: WireEvent, result: Forwarded, options: Options): void {
  const { id, type, sequence, workflowId } = event.fields;
  const { status, error, durationMs } = result;
  const outcome = error ?? `${status}`;
  const line = [
    new Date().toISOString(),
    `#${sequence}`,
    type,
    workflowId ?? '-',
    id,
    `→ ${outcome}`,
    durationWords(durationMs),
  ];
  const body = options.print === true ? [JSON.stringify(event.fields, null, 2)] : [];
  print(options, { event: event.fields, status, error, durationMs }, [line.join('  '), ...body]);
}

/** Reads single keys on a terminal; in raw mode Ctrl-C arrives as a key as well. */
function listenForKeys(on: { resend(): void; end(): void }): () => void {
  const { stdin } = process;
  if (stdin.isTTY !== true) return () => {};
  const onData = (text: string) => {
    if (text === 'r') on.resend();
    if (text === 'q' || text === CTRL_C) on.end();
  };
  stdin.setRawMode(true).setEncoding('utf8').on('data', onData);
  return () => {
    stdin.off('data', onData);
    stdin.setRawMode(false).pause();
  };
}

function remoteFrom(options: Options): Remote {
  const { server, url = server, ...rest } = options;
  const given = { ...rest, ...(url === undefined ? {} : { url: urlFrom('--url', url) }) };
  const named = serverOf(given);
  if (named !== undefined) return { server: named.url.replace(/\/+$/, ''), key: named.key };
  const config = configOf({});
  const own = serviceUrl({ ...config, isSecure: config.tlsCert !== undefined });
  return { server: own, key: keyOf(given, config.environment) };
}

function urlFrom(flag: string, value: unknown): string {
  const mistake = urlMistake(value)?.replace('`webhookUrl`', flag);
  if (mistake !== undefined) throw new UsageError(mistake);
  return String(value);
}

function secretFrom(given: unknown): { secret: string; key: Buffer } {
  const secret = given === undefined ? `whsec_${randomBytes(32).toString('base64')}` : String(given);
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  if (!secret.startsWith('whsec_') || key.length < 24) {
    throw new UsageError('--secret must be whsec_ and at least 24 bytes as base64');
  }
  return { secret, key };
}

function filterFrom(options: Options): (event: WireEvent) => boolean {
  const types = eventNames(options).map(canonicalEvent);
  return ({ fields: { type, workflowId } }) =>
    (types.includes('*') || types.includes(type as EventType)) &&
    (options.workflow === undefined || workflowId === options.workflow);
}
