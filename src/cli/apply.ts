/** `flowhook apply`: stores the definitions of the workflows directory in the database. */
import type { Command } from 'commander';
import { applyWorkflows } from '../definitions/apply.ts';
import { findWorkflowFiles } from '../definitions/files.ts';
import { silentLogger } from '../observe/log.ts';
import { addStoreOptions, withStore } from './open.ts';
import { print } from './output.ts';
import { say, warn } from './say.ts';
import { addSettings, configOf, type Options } from './settings.ts';

export function addApply(program: Command): void {
  const command = program
    .command('apply')
    .description('apply the workflow files to the database; a running server uses them at once')
    .option('--prune', 'archive workflows whose file is missing')
    .option('--force', 'let --prune archive more than half of the workflows');
  addSettings(addStoreOptions(command), ['workflows']).action(async (options: Options) => {
    // First: in a directory without workflow files, probably the wrong one, no database is created.
    await findWorkflowFiles(configOf(options).workflowsDirectory);
    await withStore(options, { make: true }, async (store, config) => {
      const report = await applyWorkflows(store, {
        directory: config.workflowsDirectory,
        prune: options.prune === true,
        force: options.force === true,
        runAs: config.runAs,
        // The log would say the same as the report.
        log: silentLogger,
      });
      const changes = (['created', 'changed', 'restored', 'archived', 'missing'] as const).flatMap((what) =>
        report[what].map((name) => `${what.padEnd(9)} ${name}`),
      );
      print(options, report, [...changes, `unchanged ${report.unchanged}`]);
      for (const { file, line, message } of report.mistakes) {
        warn(`${file}${line === null ? '' : `:${line}`}: ${message}`);
      }
      if (report.missing.length > 0) {
        say('Missing files only warn; `flowhook apply --prune` archives their workflows.');
      }
      if (report.mistakes.length > 0) process.exitCode = 1;
    });
  });
}
