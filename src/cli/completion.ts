/** `flowhook completion bash|zsh|fish`: prints a script that completes commands, flags and their values. */
import type { Command, Option } from 'commander';
import { PUSH_FORMATS } from '../jobs/push-records.ts';
import { DELIVERY_STATES } from '../model/delivery.ts';
import { EVENT_TYPES } from '../model/event.ts';
import { JOB_ORIGINS, JOB_STATES } from '../model/job.ts';
import { TEAM_SCOPES } from '../model/team.ts';
import { MODES } from '../model/workflow.ts';
import { FORMATS } from '../records/formats.ts';
import { bash, fish, type Place, type Words, zsh } from './completion-scripts.ts';
import { oneOf } from './flag-values.ts';
import type { Options } from './settings.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** The values of flags that take one of a few words. Of a comma-separated list, the first is completed. */
export const VALUES: Readonly<Record<string, readonly string[]>> = {
  'jobs list --state': JOB_STATES,
  'jobs list --origin': JOB_ORIGINS,
  'data get --format': FORMATS,
  'data import --format': PUSH_FORMATS,
  'data import --mode': MODES,
  'webhooks deliveries --state': DELIVERY_STATES,
  'webhooks replay --state': DELIVERY_STATES,
  'webhooks subscribe --events': EVENT_TYPES,
  'webhooks listen --events': EVENT_TYPES,
  'keys create --scopes': TEAM_SCOPES,
};

/** @param program with every command in it */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print the completion script of a shell')
    .argument('<shell>', SHELLS.join(', '))
    .addHelpText('after', WHERE)
    .action((name: string, _options: Options) => {
      const shell = oneOf('The shell', name, SHELLS);
      process.stdout.write({ bash, zsh, fish }[shell](placesOf(program)));
    });
}

const WHERE = `
zsh finds the file when ~/.zshrc says, before it calls compinit:
  fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit`;

function placesOf(program: Command): Place[] {
  const all = placesBelow(program, []);
  const top = all[0]?.commands ?? [];
  const help = { name: 'help', description: 'show what a command does and takes' };
  return [
    ...all.map((place) => (place.path === '' ? { ...place, commands: [...top, help] } : place)),
    { path: 'help', commands: top, flags: [], argument: [] },
  ];
}

function placesBelow(command: Command, path: readonly string[]): Place[] {
  const shown = command.commands.filter((one) => one.name() !== 'exit-codes');
  const place: Place = {
    path: path.join('/'),
    commands: shown.map((one) => ({ name: one.name(), description: sentence(one.description()) })),
    flags: [
      ...command.options.filter(({ hidden }) => !hidden).flatMap((option) => flagOf(option, path)),
      { name: '--help', description: 'display help for command' },
    ],
    argument: argumentOf(command),
  };
  return [place, ...shown.flatMap((one) => placesBelow(one, [...path, one.name()]))];
}

function flagOf(option: Option, path: readonly string[]): Place['flags'] {
  if (option.long === undefined || option.long === null) return [];
  const flag = { name: option.long, description: sentence(option.description) };
  if (!option.required) return [flag];
  const isFile = /<(file|directory)>/.test(option.flags);
  return [{ ...flag, value: isFile ? 'files' : (VALUES[`${path.join(' ')} ${flag.name}`] ?? []) }];
}

function argumentOf(command: Command): Words {
  if (command.name() === 'completion') return SHELLS;
  return command.registeredArguments.some((one) => /^files?$/.test(one.name())) ? 'files' : [];
}

function sentence(text: string): string {
  return text.split('\n')[0] ?? '';
}
