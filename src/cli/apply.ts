/** `flowhook apply`: brings the definitions in the workflows directory into the database. */
import type { Command } from 'commander';
import { applyWorkflows } from '../workflows/apply.ts';
import { withStore } from './open.ts';
import { addSettings, configOf } from './settings.ts';

export function addApply(program: Command): void {
  const command = program
    .command('apply')
    .description('apply the workflow files to the database; a running server uses them at once')
    .option('--prune', 'archive workflows whose file is missing')
    .option('--force', 'let --prune archive more than half of the workflows')
    .option('--json', 'print the report as JSON');
  addSettings(command, ['data', 'database', 'workflows', 'logLevel']);
  command.action(async (options: Record<string, unknown>) => {
    const config = configOf(options);
    const report = await withStore(config, ({ store, log }) =>
      applyWorkflows(store, {
        directory: config.workflowsDirectory,
        prune: options.prune === true,
        force: options.force === true,
        log,
      }),
    );
    if (options.json === true) {
      process.stdout.write(`${JSON.stringify(report)}\n`);
    } else {
      for (const what of ['created', 'changed', 'restored', 'archived', 'missing'] as const) {
        for (const name of report[what]) process.stdout.write(`${what.padEnd(9)} ${name}\n`);
      }
      process.stdout.write(`unchanged ${report.unchanged}\n`);
      for (const { file, line, message } of report.mistakes) {
        process.stderr.write(`${file}${line === null ? '' : `:${line}`}: ${message}\n`);
      }
      if (report.missing.length > 0) {
        process.stderr.write('Missing files only warn; `flowhook apply --prune` archives their workflows.\n');
      }
    }
    if (report.mistakes.length > 0) process.exitCode = 1;
  });
}
