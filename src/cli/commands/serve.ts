/** `flowhook serve`: runs the service until a signal, and ends the process at an uncaught exception. */

import { writeSync } from 'node:fs';
import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { misspeltVariables } from '../../config/sources.ts';
import { createLogger } from '../../observe/log.ts';
import { type Service, startService } from '../../service/service.ts';
import { countWords } from '../../std/amounts.ts';
import { sentenceOf } from '../exit.ts';
import { prepareDataDirectory } from '../open.ts';
import { addAllSettings, configOf, type Options, secretSettingsHelp } from '../options.ts';
import { say, warn } from '../terminal.ts';

/** How long handles that are still open after the stop may take to close by themselves. */
const LINGER_MS = 1_000;
/** Ctrl-C in a terminal reaches npm and the server, and npm passes its own on: within so long it is the same one. */
const ECHO_MS = 500;

export function addServe(program: Command): void {
  const command = program.command('serve').description('run the service: API, jobs and webhooks');
  addAllSettings(command);
  command.addHelpText('after', secretSettingsHelp());
  command.action(async (options: Options) => {
    const config = configOf(options);
    for (const doubt of misspeltVariables(config.environment)) process.stderr.write(`${doubt}\n`);
    prepareDataDirectory(config);
    goOnWithoutReaders();
    exitOnUncaught({ pretty: config.logPretty });
    const log = createLogger({ level: config.logLevel, pretty: config.logPretty });
    // From the beginning, so that a signal during the start also stops the service properly.
    const signal = untilSignal();
    const service = await startService(config, log, { dashboard: { builds: true } });
    greet(service, config);
    const leave = reloadOnHangUp(service);
    await signal;
    leave();
    say(`flowhook is stopping, within ${config.drainSeconds} s; a second signal ends it at once`);
    await comeToRest(service, config);
  });
}

/** SIGHUP reloads the workflow files. Signals during a reload cause one more reload after it. */
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
        () => say('The workflow files were read again'),
        (error) => warn(`The workflow files were not read again: ${sentenceOf(error)}`),
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
    `webhooks may reach ${config.allowNetworks.description}`,
  ];
  say(words.filter((word) => word !== undefined).join('; '));
  const wrong = service.workflows?.mistakes.length ?? 0;
  if (wrong > 0) {
    process.stderr.write(
      `${wrong} mistake${wrong === 1 ? '' : 's'} in workflow files: see workflow.broken above, or run \`flowhook apply\`\n`,
    );
  }
  if (service.firstKey !== undefined) {
    say('The first API key of this instance, shown this once:');
    process.stdout.write(`key: ${service.firstKey}\n`);
    process.stdout.write(
      `try: curl -H 'x-api-key: ${service.firstKey}' ${service.url}/v1/integrations/webhooks/list\n`,
    );
  }
  if (service.dashboard !== undefined) {
    process.stdout.write(`dashboard: ${service.dashboard}\n`);
    if (service.firstKey !== undefined)
      say('Opened within 30 minutes, once, the dashboard signs you in with that key');
  }
  process.stdout.write(`flowhook listening on ${service.url}\n`);
}

function roleWords({ role }: Config): string | undefined {
  const does = { all: undefined, api: 'answers requests', worker: 'runs jobs', sender: 'delivers webhooks' }[
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
      others.length > 0 ? ' (`flowhook apply` brings files in; jobs are left to nodes that have them)' : '';
    return [`${same} workflow${same === 1 ? '' : 's'} as applied`, ...others].join(', ') + advice;
  }
  if (workflows === undefined)
    return 'workflow files are still being read, those applied before serve meanwhile';
  const { created, changed, restored, unchanged } = workflows;
  const count = created.length + changed.length + restored.length + unchanged;
  return `${count} workflow${count === 1 ? '' : 's'} loaded`;
}

/** Stops the service, prints what was cut off, and ends the process even if something would keep it alive. */
async function comeToRest(service: Service, { drainSeconds }: Config): Promise<void> {
  const { stuck, cut } = await service.stop();
  const { requests, deliveries, jobs } = cut;
  const words = [
    ...(requests > 0 ? [`${countWords(requests, 'request')} broken off`] : []),
    ...(deliveries > 0 ? [`${countWords(deliveries, 'attempt')} of deliveries, which are sent again`] : []),
    ...(jobs > 0 ? [`${countWords(jobs, 'job')} released`] : []),
  ];
  if (words.length > 0) say(`flowhook cut off what was under way: ${words.join(', ')}`);
  if (stuck.length > 0) {
    process.stderr.write(
      `flowhook did not come to rest within ${drainSeconds} s and ends all the same: ${stuck.join(', ')} did not end. Nothing that was acknowledged is lost\n`,
    );
    process.exit(1);
  }
  say('flowhook has stopped');
  // Nothing that is still open is needed.
  setTimeout(() => process.exit(), LINGER_MS).unref();
}

/** When nobody reads the log any more, or its disk is full, lines are lost and the service continues. */
function goOnWithoutReaders(): void {
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
}

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    let first: { signal: string; atMs: number } | undefined;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        const atMs = performance.now();
        if (first?.signal === signal && atMs - first.atMs < ECHO_MS) return;
        if (first !== undefined) {
          process.stderr.write(
            'flowhook ends at once, at a second signal: what was under way is taken up at the next start\n',
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
  'nothing that was acknowledged is lost, and what was under way is taken up at the next start. ' +
  'Let a supervisor start it again (`restart: on-failure`), and report this line if it comes back';

/** Ends the process with exit code 1 at an uncaught exception. */
export function exitOnUncaught({ pretty }: { pretty: boolean }): void {
  process.on('uncaughtException', (error: unknown) => {
    const err = error instanceof Error ? error : new Error(String(error));
    // Synchronously: the process ends right after.
    try {
      writeSync(2, pretty ? forPeople(err) : forPrograms(err));
    } catch {
      // Standard error is closed.
    }
    process.exit(1);
  });
}

function forPeople({ stack, message }: Error): string {
  return `${stack ?? message}\nfatal: flowhook has ended (${message}): ${WHAT_TO_DO}\n`;
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
