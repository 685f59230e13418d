/** `flowhook apply` and `flowhook workflows validate`: applies and checks workflow files. */
import { existsSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { applyWorkflows } from '../../definitions/apply.ts';
import { findWorkflowFiles, strayMessage } from '../../definitions/files.ts';
import { loadWorkflowFile, loadWorkflows } from '../../definitions/load.ts';
import { type Mistake, mistakeLine } from '../../definitions/section.ts';
import { silentLogger } from '../../observe/log.ts';
import { countWords } from '../../std/amounts.ts';
import type { Command } from '../command.ts';
import { addStoreOptions, withStore } from '../open.ts';
import { addSettings, configOf, type Options } from '../options.ts';
import { print, say, warn } from '../terminal.ts';

export function addApply(program: Command): void {
  const command = program
    .command('apply')
    .description('apply the workflow files to the database; a running server uses them immediately')
    .withExamples('apply', 'apply --prune')
    .option('--prune', 'archive workflows whose file is missing')
    .option('--force', 'allow --prune to archive more than half of the workflows');
  addSettings(addStoreOptions(command), ['workflows']).action(async (options: Options) => {
    // In a wrong directory, this check fails before the command creates a database there.
    await findWorkflowFiles(configOf(options).workflowsDirectory);
    await withStore(options, { make: true }, async (store, config) => {
      const report = await applyWorkflows(store, {
        directory: config.workflowsDirectory,
        prune: options.prune === true,
        force: options.force === true,
        runAs: config.runAs,
        // The log would repeat the report.
        log: silentLogger,
      });
      const changes = (['created', 'changed', 'restored', 'archived', 'missing'] as const).flatMap((what) =>
        report[what].map((name) => `${what.padEnd(9)} ${name}`),
      );
      print(options, report, [...changes, `unchanged ${report.unchanged}`]);
      for (const mistake of report.mistakes) warn(mistakeLine(mistake));
      if (report.missing.length > 0) {
        say(
          'Workflows whose file is missing were not changed. To archive them, run `flowhook apply --prune`',
        );
      }
      if (report.mistakes.length === 0) return;
      say('Workflows whose file has a mistake were not changed');
      process.exitCode = 1;
    });
  });
}

export async function validate(files: readonly string[], options: Options): Promise<void> {
  const { checked, mistakes } =
    files.length === 0 ? await checkDirectory(options) : await checkFiles(files, options);
  print(options, { checked, mistakes }, mistakes.map(mistakeLine));
  const found = mistakes.length === 0 ? 'no mistakes' : countWords(mistakes.length, 'mistake');
  say(`${countWords(checked, 'file')}, ${found}`);
  if (mistakes.length > 0) process.exitCode = 1;
}

interface Checked {
  checked: number;
  mistakes: Mistake[];
}

async function checkDirectory(options: Options): Promise<Checked> {
  const { workflowsDirectory: directory, runAs } = configOf(options);
  const { found, mistakes } = await loadWorkflows({
    directory,
    known: () => undefined,
    runAs,
    log: silentLogger,
  });
  const shown = mistakes.map((mistake) => ({
    ...mistake,
    file: relative(process.cwd(), join(directory, mistake.file)),
  }));
  return { checked: found.length + new Set(mistakes.map(({ file }) => file)).size, mistakes: shown };
}

async function checkFiles(files: readonly string[], options: Options): Promise<Checked> {
  const mistakes: Mistake[] = [];
  const directory = resolve(configOf(options).workflowsDirectory);
  for (const file of files) {
    // A file directly in the workflows directory is a mistake, because it belongs to no team. A file elsewhere needs no
    // team.
    if (dirname(resolve(file)) === directory && existsSync(file)) {
      const teams = (await findWorkflowFiles(directory)).files.map(({ team }) => team);
      mistakes.push({ file, line: null, message: strayMessage(basename(file), [...new Set(teams)]) });
      continue;
    }
    const loaded = await loadWorkflowFile(file, { runAs: configOf(options).runAs, log: silentLogger });
    if ('mistakes' in loaded) mistakes.push(...loaded.mistakes.map((mistake) => ({ ...mistake, file })));
  }
  return { checked: files.length, mistakes };
}
