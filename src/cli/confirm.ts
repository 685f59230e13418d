/** Asks before a command destroys something. */
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { printable } from '../std/printable.ts';
import { UsageError } from './exit.ts';
import type { Options } from './settings.ts';

export interface Question {
  /** What will happen, and to how much: `3 records of "people" will be erased for good`. */
  what: string;
  /** What is true if the user does not agree: `nothing was erased`. */
  otherwise: string;
  /** A name that must be typed, for what hurts most; without one, `y` or `yes` agrees. */
  name?: string;
}

/** Adds `--yes`, with which `confirm` does not ask. */
export function addYes(command: Command): Command {
  return command.option('--yes', 'do not ask (for scripts)');
}

/**
 * Asks on standard error, unless `--yes` was given, and reads one line from the terminal. Without one it refuses at once:
 * a pipe may stay open without end, and in a loop over lines the next one is not meant as an answer.
 *
 * @throws UsageError unless the user agrees
 */
export async function confirm(options: Options, { what, otherwise, name }: Question): Promise<void> {
  if (options.yes === true) return;
  if (process.stdin.isTTY !== true) {
    throw new UsageError(`${what}. This is no terminal to ask on, so ${otherwise}. Say --yes to go on`);
  }
  const how = name === undefined ? 'Go on? [y/N] ' : `Type ${name} to go on: `;
  // Not by `say`: even with --quiet, the user must know what is asked.
  process.stderr.write(printable(`${what}. ${how}`));
  const answer = await readAnswer();
  // Where nobody has pressed Enter, the next line would continue this one.
  if (answer === undefined) process.stderr.write('\n');
  if (name === undefined ? /^y(es)?$/i.test(answer ?? '') : answer === name) return;
  throw new UsageError(`Not confirmed, so ${otherwise}. In scripts, say --yes`);
}

/** The first line of standard input; undefined when that has ended. */
async function readAnswer(): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin });
  try {
    for await (const line of lines) return line.trim();
    return undefined;
  } finally {
    lines.close();
    process.stdin.pause();
  }
}
