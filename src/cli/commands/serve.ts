/** `flowhook serve`: runs the service until a signal or an uncaught exception. */
import { writeSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { misspelledVariables } from '../../config/sources.ts';
import { createLogger } from '../../observe/log.ts';
import { type Service, startService } from '../../service/service.ts';
import { countWords } from '../../std/amounts.ts';
import { keepCode } from '../../std/own-files.ts';
import type { Command } from '../command.ts';
import { sentenceOf } from '../exit.ts';
import { prepareDataDirectory } from '../open.ts';
import { addAllSettings, configOf, type Options, secretSettingsHelp } from '../options.ts';
import { say, warn } from '../terminal.ts';

/** After the stop, open handles have this long to close before the process ends. */
const LINGER_MS = 1_000;
/**
 * If npm runs the server, Ctrl-C in a terminal reaches both, and npm forwards its signal to the server. A second signal
 * within this time is therefore treated as a duplicate of the first signal.
 */
const ECHO_MS = 500;

export function addServe(program: Command): void {
  const command = program
    .command('serve')
    .description('run the service: API, jobs and webhooks')
    .withExamples('serve', 'serve --port 9000 --data /var/lib/flowhook --workflows /etc/flowhook/workflows');
  addAllSettings(command);
  command.addHelpText('after', secretSettingsHelp());
  command.action(async (options: Options) => {
    const config = configOf(options);
    for (const doubt of misspelledVariables(config.environment)) process.stderr.write(`${doubt}\n`);
    prepareDataDirectory(config);
    continueWithoutReaders();
    exitOnUncaught({ pretty: config.logPretty });
    const log = createLogger({ level: config.logLevel, pretty: config.logPretty });
    // The signal handlers are installed before the start, so that a signal during the start also stops the service
    // properly.
    const signal = untilSignal();
    const service = await startService(config, log, { dashboard: { builds: true } });
    greet(service, config);
    const leave = reloadOnHangUp(service);
    await keepCode();
    await signal;
    leave();
    say(
      `flowhook is stopping. This takes up to ${config.drainSeconds} s; a second signal ends it immediately`,
    );
    await stop(service, config);
  });
}

/** Reloads the workflow files on SIGHUP. Signals during a reload cause a single further reload. */
function reloadOnHangUp(service: Service): () => void {
  let isWanted = false;
  let isReading = false;
  const read = async () => {
    isWanted = true;
    if (isReading) return;
    isReading = true;
    while (isWanted) {
      isWanted = false;
      await service.reload().then(
        () => say('The workflow files were reloaded'),
        (error) => warn(`The workflow files could not be reloaded: ${sentenceOf(error)}`),
      );
    }
    isReading = false;
  };
  process.on('SIGHUP', read);
  return () => process.off('SIGHUP', read);
}

function greet(service: Service, config: Config): void {
  const words = [
    roleWords(config),
    ...(config.role === 'all' || config.role === 'worker' ? [loadedWorkflows(service)] : []),
    `networks that webhooks may reach: ${config.allowNetworks.description}`,
  ];
  say(words.filter((word) => word !== undefined).join('; '));
  const wrong = service.workflows?.mistakes.length ?? 0;
  if (wrong > 0) {
    process.stderr.write(
      `${countWords(wrong, 'mistake')} in workflow files: see workflow.broken above, or run \`flowhook workflows validate\`\n`,
    );
  }
  if (service.firstKey !== undefined) {
    say('The first API key of this instance, shown only once:');
    process.stdout.write(`key: ${service.firstKey}\n`);
    process.stdout.write(
      `try: curl -H 'x-api-key: ${service.firstKey}' ${service.url}/v1/integrations/webhooks/list\n`,
    );
  }
  if (service.dashboard !== undefined) {
    process.stdout.write(`dashboard: ${service.dashboard}\n`);
    if (service.firstKey !== undefined)
      say('The dashboard link signs you in with this key. It works once, within 30 minutes');
  }
  process.stdout.write(`flowhook listening on ${service.url}\n`);
}

function roleWords({ role }: Config): string | undefined {
  const does = { all: undefined, api: 'serves requests', worker: 'runs jobs', sender: 'delivers webhooks' }[
    role
  ];
  return does && `this node only ${does}`;
}

function loadedWorkflows({ workflows, comparison }: Service): string {
  if (comparison !== undefined) {
    const { same, different, unapplied, missing } = comparison;
    const others = [
      ...(different.length > 0 ? [`different here: ${different.join(', ')}`] : []),
      ...(unapplied.length > 0 ? [`not applied: ${unapplied.join(', ')}`] : []),
      ...(missing.length > 0 ? [`without a file here: ${missing.join(', ')}`] : []),
    ];
    const advice =
      others.length > 0
        ? ' (`flowhook apply` applies the files; jobs without a matching file here run on other nodes)'
        : '';
    return [`${countWords(same, 'workflow')} as applied`, ...others].join(', ') + advice;
  }
  if (workflows === undefined)
    return 'loading workflow files; workflows applied before are already available';
  const { created, changed, restored, unchanged } = workflows;
  return `${countWords(created.length + changed.length + restored.length + unchanged, 'workflow')} loaded`;
}

/** Stops the service, prints the work that it interrupted, and ends the process even if a handle is still open. */
async function stop(service: Service, { drainSeconds }: Config): Promise<void> {
  const { stuck, cut } = await service.stop();
  const { requests, deliveries, jobs } = cut;
  const words = [
    ...(requests > 0 ? [`${countWords(requests, 'request')} aborted`] : []),
    ...(deliveries > 0 ? [`${countWords(deliveries, 'delivery attempt')}, which will be retried`] : []),
    ...(jobs > 0 ? [`${countWords(jobs, 'job')} released`] : []),
  ];
  if (words.length > 0) say(`flowhook interrupted work in progress: ${words.join(', ')}`);
  if (stuck.length > 0) {
    process.stderr.write(
      `flowhook could not stop ${stuck.join(', ')} within ${drainSeconds} s, and exits. No acknowledged data is lost\n`,
    );
    process.exit(1);
  }
  say('flowhook has stopped');
  setTimeout(() => process.exit(), LINGER_MS).unref();
}

/** If nobody reads the log anymore, or the disk with the log is full, log lines are lost and the service continues. */
function continueWithoutReaders(): void {
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
}

/** Resolves at the first SIGTERM or SIGINT. A second signal ends the process immediately. */
function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    let first: { signal: string; atMs: number } | undefined;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        const atMs = performance.now();
        if (first?.signal === signal && atMs - first.atMs < ECHO_MS) return;
        if (first !== undefined) {
          process.stderr.write(
            'flowhook exits immediately after a second signal. The next start continues interrupted work\n',
          );
          process.exit(1);
        }
        first = { signal, atMs };
        resolve();
      });
    }
  });
}

const WHAT_TO_DO =
  'No acknowledged data is lost, and the next start continues interrupted work. Let a supervisor restart flowhook ' +
  '(`restart: on-failure`), and report this error if it happens again';

/** Ends the process with exit code 1 after an uncaught exception. */
function exitOnUncaught({ pretty }: { pretty: boolean }): void {
  process.on('uncaughtException', (error: unknown) => {
    const err = error instanceof Error ? error : new Error(String(error));
    // The error is written synchronously, because the process exits next.
    try {
      writeSync(2, pretty ? forPeople(err) : forPrograms(err));
    } catch {
      // Standard error is closed.
    }
    process.exit(1);
  });
}

function forPeople({ stack, message }: Error): string {
  return `${stack ?? message}\nfatal: flowhook crashed (${message}). ${WHAT_TO_DO}\n`;
}

function forPrograms({ name, message, stack }: Error): string {
  const line = {
    level: 'fatal',
    time: new Date().toISOString(),
    err: { type: name, message, stack },
    msg: `service.crashed: ${WHAT_TO_DO}`,
  };
  return `${JSON.stringify(line)}\n`;
}
