/** `flowhook workflows validate`: checks workflow files without a database, and prints every mistake. */
import { join, relative } from 'node:path';
import type { Command } from 'commander';
import { silentLogger } from '../observe/log.ts';
import { countWords } from '../std/amounts.ts';
import type { Mistake } from '../workflows/check.ts';
import { loadWorkflowFile, loadWorkflows } from '../workflows/load.ts';
import { print } from './output.ts';
import { say } from './say.ts';
import { addSettings, configOf, type Options } from './settings.ts';

export function addValidate(workflows: Command): void {
  const validate = workflows
    .command('validate')
    .description('check workflow files without a database: every mistake with its file and line')
    .argument('[files...]', 'files `<team>/<id>.yaml` or `.mts` (default: all in the workflows directory)')
    .option('--json', 'print JSON');
  addSettings(validate, ['workflows']).action(async (files: string[], options: Options) => {
    const { checked, mistakes } =
      files.length === 0 ? await checkDirectory(options) : await checkFiles(files);
    const lines = mistakes.map(
      ({ file, line, message }) => `${file}${line === null ? '' : `:${line}`}: ${message}`,
    );
    print(options, { checked, mistakes }, lines);
    const found = mistakes.length === 0 ? 'no mistakes' : countWords(mistakes.length, 'mistake');
    say(`${countWords(checked, 'file')}, ${found}`);
    if (mistakes.length > 0) process.exitCode = 1;
  });
}

interface Checked {
  checked: number;
  mistakes: Mistake[];
}

async function checkDirectory(options: Options): Promise<Checked> {
  const directory = configOf(options).workflowsDirectory;
  const { found, mistakes } = await loadWorkflows({ directory, known: () => undefined, log: silentLogger });
  const shown = mistakes.map((mistake) => ({
    ...mistake,
    file: relative(process.cwd(), join(directory, mistake.file)),
  }));
  return { checked: found.length + new Set(mistakes.map(({ file }) => file)).size, mistakes: shown };
}

async function checkFiles(files: readonly string[]): Promise<Checked> {
  const mistakes: Mistake[] = [];
  for (const file of files) {
    const loaded = await loadWorkflowFile(file, { log: silentLogger });
    if ('mistakes' in loaded) mistakes.push(...loaded.mistakes.map((mistake) => ({ ...mistake, file })));
  }
  return { checked: files.length, mistakes };
}
