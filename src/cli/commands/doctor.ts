/** `flowhook doctor`: checks the installation, and prints the effect and the fix of every problem. */
import { type InspectColor, styleText } from 'node:util';
import { Option } from 'commander';
import type { Flowhook } from '../../../client/src/flowhook-client.ts';
import { ConfigError } from '../../config/config.ts';
import { misspelledVariables } from '../../config/sources.ts';
import type { Check } from '../../doctor/check.ts';
import { examineInstallation } from '../../doctor/doctor.ts';
import { EXAMPLES } from '../../doctor/network.ts';
import { CHECK_GROUPS, type CheckGroup, type Finding, type FindingStatus } from '../../model/finding.ts';
import { countWords, durationWords } from '../../std/amounts.ts';
import { toIso } from '../../std/clock.ts';
import { printable } from '../../std/printable.ts';
import { createLiveLine } from '../../std/progress-bar.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../exit.ts';
import { addStoreOptions } from '../open.ts';
import { addSettings, configOf, type Options } from '../options.ts';
import { serverOf } from '../profiles.ts';
import { print, say, screen, wrapped } from '../terminal.ts';

const SIGNS: Record<FindingStatus, [sign: string, color: InspectColor]> = {
  ok: ['✓', 'green'],
  warning: ['!', 'yellow'],
  error: ['✗', 'red'],
  skipped: ['-', 'gray'],
};
const TITLES: Record<CheckGroup, string> = {
  machine: 'Machine',
  settings: 'Settings',
  files: 'Files',
  database: 'Database',
  backups: 'Backups',
  network: 'Network',
  work: 'Work',
};
const DRAW_MS = 250;
const NAME_WIDTH = 22;

/** The output with `--json`. */
interface Shown {
  ok: boolean;
  examinedAt: string;
  tookMs: number;
  findings: readonly Finding[];
}

export function addDoctor(program: Command): void {
  const command = program
    .command('doctor')
    .description(
      'check the machine, settings, files, database, backups, network and recent failures, with or without a ' +
        'running server, and print the effect and the fix of every problem; nothing is changed',
    )
    .withExamples('doctor', 'doctor --full --online', 'doctor --json')
    .option('--full', 'read the whole database, without a time limit')
    .option(
      '--online [urls...]',
      'also test DNS and outgoing requests with these URLs (default: example URLs); without this flag, no ' +
        'request is sent',
    )
    .addOption(new Option('--url <url>', 'run the checks on this server').helpGroup('Server:'))
    .addOption(new Option('--key <key>', 'API key with the scope operator').helpGroup('Server:'))
    .addOption(new Option('--profile <name>', 'use a server saved by `flowhook login`').helpGroup('Server:'))
    .addHelpText('after', '\nExit codes: 0 no errors (there may be warnings), 1 errors');
  addSettings(addStoreOptions(command), ['host', 'port', 'publicUrl', 'workflows', 'backupDirectory']).action(
    doctor,
  );
}

async function doctor(options: Options): Promise<void> {
  const isRemote = options.url !== undefined || options.profile !== undefined;
  if (isRemote && (options.full === true || options.online !== undefined)) {
    throw new UsageError('--full and --online work only on this machine, not with --url or --profile');
  }
  const shown = isRemote ? await askServer(options) : await examineHere(options);
  if (options.json === true) print(options, shown, []);
  else process.stdout.write(`${linesOf(shown.findings).join('\n')}\n`);
  say(summaryOf(shown));
  if (!shown.ok) process.exitCode = 1;
}

async function askServer(options: Options): Promise<Shown> {
  const target = serverOf(options);
  if (target === undefined) throw new UsageError('Name the server with --url or --profile');
  const { Flowhook } = await import('../../../client/src/flowhook-client.ts');
  const server: Flowhook = new Flowhook(target);
  return server.systemChecks();
}

async function examineHere(options: Options): Promise<Shown> {
  const online = urlsOf(options.online);
  const line = createLiveLine(screen, () => performance.now());
  let doing: Check | undefined;
  let since = performance.now();
  const draw = () => {
    if (doing === undefined) return;
    const { group, name } = doing;
    line.show(() => `${TITLES[group]}: ${name}, ${durationWords(performance.now() - since)}`);
  };
  const timer = setInterval(draw, DRAW_MS);
  try {
    const { examinedAt, tookMs, findings } = await examineInstallation(
      { ...settingsOf(options), online, isFull: options.full === true },
      {
        onBegin(check) {
          doing = check;
          since = performance.now();
          draw();
        },
      },
    );
    const isFine = findings.every(({ status }) => status !== 'error');
    return { ok: isFine, examinedAt: toIso(examinedAt), tookMs, findings };
  } finally {
    clearInterval(timer);
    line.stop();
  }
}

/** Returns the settings. If the settings are invalid, returns the mistakes, which doctor also reports as a finding. */
function settingsOf(options: Options) {
  try {
    const settings = configOf(options);
    return { settings, doubts: misspelledVariables(settings.environment) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { settings: { mistakes: error.mistakes }, doubts: [] };
  }
}

/** Returns the URLs to request; null if no request may be sent. */
function urlsOf(online: unknown): readonly string[] | null {
  if (online === undefined) return null;
  if (!Array.isArray(online)) return EXAMPLES;
  const wrong = online.find((url) => !/^https?:\/\/[^/]/.test(url) || !URL.canParse(url));
  if (wrong !== undefined)
    throw new UsageError(`--online accepts only http:// and https:// URLs, found "${wrong}"`);
  return online;
}

function linesOf(findings: readonly Finding[]): string[] {
  return CHECK_GROUPS.flatMap((group) => {
    const found = findings.filter((finding) => finding.group === group);
    if (found.length === 0) return [];
    return [styled('bold', TITLES[group]), ...found.flatMap(linesOfOne), ''];
  });
}

function linesOfOne({ check, status, what, why, fix }: Finding): string[] {
  const [sign, color] = SIGNS[status];
  const parts =
    status === 'skipped'
      ? [`${what}: ${why ?? ''}${fix === null ? '' : `. ${fix}`}`]
      : [
          what,
          ...(why === null ? [] : [`Why it matters: ${why}`]),
          ...(fix === null ? [] : [`What to do: ${fix}`]),
        ];
  const indent = ' '.repeat(NAME_WIDTH + 4);
  const [first = '', ...more] = parts.flatMap((part) =>
    wrapped(indent + printable(part), width()).split('\n'),
  );
  const name = printable(check).padEnd(NAME_WIDTH);
  return [
    `  ${styled(color, sign)} ${styled(status === 'skipped' ? 'gray' : 'reset', name)}${first.slice(indent.length)}`,
    ...more,
  ];
}

function summaryOf({ findings, tookMs }: Shown): string {
  const count = (status: FindingStatus) => findings.filter((finding) => finding.status === status).length;
  return [
    `${countWords(findings.length, 'check')} in ${durationWords(tookMs)}: ${count('ok')} ok`,
    countWords(count('warning'), 'warning'),
    countWords(count('error'), 'error'),
    `${count('skipped')} skipped`,
  ].join(', ');
}

/** Colors the text on a terminal that supports colors, unless the user has turned them off. */
function styled(color: InspectColor, text: string): string {
  return styleText(color, text, { stream: process.stdout, validateStream: true });
}

function width(): number {
  return process.stdout.columns ?? Number.POSITIVE_INFINITY;
}
