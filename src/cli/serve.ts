/** `flowhook serve`: runs the service until a signal. */
import type { Command } from 'commander';
import { SETTINGS } from '../config.ts';
import { createLogger } from '../observe/log.ts';
import { type Service, startService } from '../service.ts';
import { prepareDataDirectory } from './data-directory.ts';
import { addSettings, configOf, misspeltVariables, type Options, secretSettingsHelp } from './settings.ts';

export function addServe(program: Command): void {
  const command = program.command('serve').description('run the service: API, jobs and webhooks');
  addSettings(
    command,
    SETTINGS.map((setting) => setting.name),
  );
  command.addHelpText('after', secretSettingsHelp());
  command.action(async (options: Options) => {
    const config = configOf(options);
    for (const doubt of misspeltVariables(config.environment)) process.stderr.write(`${doubt}\n`);
    prepareDataDirectory(config);
    const log = createLogger({ level: config.logLevel, pretty: config.logPretty });
    const service = await startService(config, log);
    greet(service, config.allowNetworks.description);
    await untilSignal();
    process.stderr.write('flowhook is stopping; a second signal ends it at once\n');
    await service.stop();
  });
}

function greet(service: Service, networks: string): void {
  const { workflows } = service;
  const known =
    workflows.created.length + workflows.changed.length + workflows.restored.length + workflows.unchanged;
  process.stderr.write(`${known} workflow${known === 1 ? '' : 's'} loaded; webhooks may reach ${networks}\n`);
  const wrong = workflows.mistakes.length;
  if (wrong > 0) {
    process.stderr.write(
      `${wrong} mistake${wrong === 1 ? '' : 's'} in workflow files: see workflow.broken above, or run \`flowhook apply\`\n`,
    );
  }
  if (service.firstKey !== undefined) {
    process.stderr.write('The first API key of this instance, shown this once:\n');
    process.stdout.write(`key: ${service.firstKey}\n`);
    process.stdout.write(
      `try: curl -H 'x-api-key: ${service.firstKey}' ${service.url}/v1/integrations/webhooks/list\n`,
    );
  }
  process.stdout.write(`flowhook listening on ${service.url}\n`);
}

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    let told = false;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (told) process.exit(1);
        told = true;
        resolve();
      });
    }
  });
}
