/** Adds to every command what all share: examples at the top of the help, `--quiet`, and a note on exit codes. */
import type { EventEmitter } from 'node:events';
import type { Command } from 'commander';
import { nearest } from '../std/nearest.ts';
import { EXIT_CODES } from './exit.ts';
import { beQuiet, wrapped } from './terminal.ts';

/** The examples at the top of `flowhook --help`. */
const FIRST_STEPS = [
  'serve',
  'run people --wait',
  'webhooks subscribe people https://example.com/hook',
  'jobs list --state failed',
];
/** The maximum number of examples in the help of a noun (`flowhook jobs`). */
const EXAMPLES_OF_A_NOUN = 4;
/** The width of the help when that of the terminal is unknown. */
const WIDTH = 80;

/** Must be called after the commands have been added. */
export function finishCommands(program: Command): void {
  for (const { path, command } of leavesOf(program)) {
    const has = (flag: string) => command.options.some(({ long }) => long === flag);
    if (!has('--quiet')) command.option('--quiet', 'print only data and errors');
    const examples = EXAMPLES[path] ?? [];
    addExamples(command, examples);
    if (examples[0] !== undefined) {
      command.showHelpAfterError(`Example: ${wholeExample(examples[0])}\n(--help shows all options)`);
    }
    wrapNotes(command);
    command.addHelpText('after', '\nExit codes: flowhook help exit-codes');
    reportMissingLast(command);
  }
  for (const noun of program.commands.filter(({ commands }) => commands.length > 0)) {
    const verbs = leavesOf(noun, noun.name()).flatMap(({ path }) => (EXAMPLES[path] ?? []).slice(0, 1));
    addExamples(noun, verbs.slice(0, EXAMPLES_OF_A_NOUN));
    wrapNotes(noun);
  }
  addExamples(program, FIRST_STEPS);
  program
    .command('exit-codes', { hidden: true })
    .description(
      `what the exit codes mean\n${EXIT_CODES.map(([code, meaning]) => `\n  ${code}  ${meaning}`).join('')}`,
    )
    .action((_options, command: Command) => command.outputHelp());
  program.addHelpText(
    'after',
    `\n${wrapped(`Exit codes: ${EXIT_CODES.map(([code, meaning]) => `${code} ${/^[^;:]+/.exec(meaning)}`).join(', ')}`, WIDTH)}`,
  );
  program.hook('preAction', (_, command) => beQuiet(command.opts().quiet === true));
}

/** Reports a missing flag only after unknown flags, which may be misspellings of it. Commander does the opposite. */
function reportMissingLast(command: Command): void {
  const mandatory = command.options.filter((option) => option.mandatory);
  for (const option of mandatory) option.mandatory = false;
  command.hook('preAction', () => {
    const missing = mandatory.find((option) => command.getOptionValue(option.attributeName()) === undefined);
    if (missing !== undefined) command.error(`error: required option '${missing.flags}' is missing`);
  });
}

function addExamples(command: Command, examples: readonly string[]): void {
  if (examples.length === 0) return;
  const lines = examples.map((example) => `  ${continued(wholeExample(example))}`);
  command.addHelpText('before', `Examples:\n${lines.join('\n')}\n`);
}

/** An example as the user types it. */
export function wholeExample(example: string): string {
  return /(?:^| )flowhook /.test(example) ? example : `flowhook ${example}`;
}

/** Breaks a long example into lines that end in a backslash. */
function continued(example: string): string {
  const at = example.lastIndexOf(' --', WIDTH - ' \\'.length);
  if (example.length + '  '.length <= WIDTH || at < 0) return example;
  return `${example.slice(0, at)} \\\n      ${continued(example.slice(at + 1))}`;
}

/** Wraps the notes that a command adds to its help: commander does not. */
function wrapNotes(command: Command): void {
  const emitter = command as unknown as EventEmitter;
  const width = () => command.configureOutput().getOutHelpWidth?.() ?? WIDTH;
  for (const write of emitter.listeners('afterHelp')) {
    emitter.off('afterHelp', write as () => void);
    command.on('afterHelp', (context: { write(text: string): void }) =>
      write({ ...context, write: (text: string) => context.write(wrapped(text, width())) }),
    );
  }
}

/** The commands without subcommands, with their paths: `jobs list`. */
export function leavesOf(command: Command, path = ''): { path: string; command: Command }[] {
  return command.commands
    .filter((one) => one.name() !== 'exit-codes')
    .flatMap((one) => {
      const name = path === '' ? one.name() : `${path} ${one.name()}`;
      return one.commands.length > 0 ? leavesOf(one, name) : [{ path: name, command: one }];
    });
}

/** For `flowhook validate`, names the noun that has this verb. For other unknown words, commander suggests a command. */
export function rejectVerbWithoutNoun(program: Command, [verb]: readonly string[]): void {
  if (verb === undefined || program.commands.some((command) => command.name() === verb)) return;
  const meant = leavesOf(program)
    .map(({ path }) => path)
    .filter((path) => path.endsWith(` ${verb}`));
  if (meant.length === 0 || verb === 'help') return;
  program.error(`error: unknown command '${verb}'\n(Did you mean ${meant.join(' or ')}?)`);
}

/** Rejects `flowhook help nope` and `flowhook jobs help nope`, for which commander would print the general help. */
export function rejectHelpOnNothing(program: Command, args: readonly string[]): void {
  const at = args.indexOf('help');
  const noun = at === 1 ? program.commands.find((command) => command.name() === args[0]) : program;
  if ((at !== 0 && at !== 1) || noun === undefined || noun.commands.length === 0) return;
  let command = noun;
  for (const name of args.slice(at + 1).filter((one) => !one.startsWith('-'))) {
    const found = command.commands.find((one) => one.name() === name);
    if (found === undefined && command.commands.length > 0) {
      const meant = nearest(
        name,
        command.commands.map((one) => one.name()),
      );
      const advice = meant === undefined ? '' : `\n(Did you mean ${meant}?)`;
      command.error(`error: unknown command '${name}'${advice}`);
    }
    command = found ?? command;
  }
}

export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  init: ['init', 'init /etc/flowhook'],
  serve: ['serve', 'serve --port 9000 --data /var/lib/flowhook --workflows /etc/flowhook/workflows'],
  run: ['run people --wait', 'run acme/people --wait --logs'],
  apply: ['apply', 'apply --prune'],
  doctor: ['doctor', 'doctor --full --online', 'doctor --json'],
  'jobs list': ['jobs list', 'jobs list --workflow people --state failed --limit 5'],
  'jobs show': ['jobs show JOB'],
  'jobs logs': ['jobs logs JOB', 'jobs logs JOB --follow'],
  'jobs watch': ['jobs watch', 'jobs watch JOB'],
  'jobs cancel': ['jobs cancel JOB'],
  'jobs rerun': ['jobs rerun JOB'],
  'jobs run-now': ['jobs run-now JOB'],
  'workflows list': ['workflows list', 'workflows list --team acme --json'],
  'workflows show': ['workflows show people'],
  'workflows validate': ['workflows validate', 'workflows validate workflows/acme/people.yaml'],
  'workflows test': ['workflows test workflows/acme/people.yaml'],
  'workflows preview': [
    'workflows preview workflows/acme/people.yaml',
    'workflows preview workflows/acme/people.yaml --from saved.html',
  ],
  'workflows new': [
    'workflows new https://example.com/people',
    'workflows new https://example.com/api/people --out workflows/acme/people.yaml',
  ],
  'workflows pause': ['workflows pause people'],
  'workflows resume': ['workflows resume people'],
  'data import': [
    'data import people.csv --workflow inbox',
    'zcat people.ndjson.gz | flowhook data import - --format ndjson --workflow inbox',
  ],
  'data get': ['data get people', 'data get people --format csv > people.csv'],
  'data changes': ['data changes people --since 3'],
  'data versions': ['data versions people'],
  'data erase': ['data erase --team acme --email ada@example.com --dry-run'],
  'data export': ['data export --email ada@example.com > ada.ndjson'],
  'webhooks list': ['webhooks list', 'webhooks list --workflow people'],
  'webhooks show': ['webhooks show WEBHOOK'],
  'webhooks subscribe': [
    'webhooks subscribe people https://example.com/hook --events job.finished,job.failed',
    'webhooks subscribe https://example.com/all',
  ],
  'webhooks unsubscribe': ['webhooks unsubscribe WEBHOOK', 'webhooks unsubscribe https://example.com/hook'],
  'webhooks set': [
    'webhooks set WEBHOOK --ordered --rate 5 --timeout 10',
    'webhooks set WEBHOOK --header "x-token: abc"',
  ],
  'webhooks pause': ['webhooks pause WEBHOOK --reason "moving house"'],
  'webhooks resume': ['webhooks resume WEBHOOK'],
  'webhooks secret': ['webhooks secret WEBHOOK'],
  'webhooks rotate': ['webhooks rotate WEBHOOK --overlap-hours 24'],
  'webhooks test': ['webhooks test WEBHOOK --wait'],
  'webhooks deliveries': ['webhooks deliveries WEBHOOK --state waiting,dead'],
  'webhooks delivery': ['webhooks delivery DELIVERY --body'],
  'webhooks replay': [
    'webhooks replay DELIVERY',
    'webhooks replay WEBHOOK --since 2026-11-20T10:00Z --dry-run',
    'webhooks replay WEBHOOK --since 2026-11-20T10:00Z --wait',
  ],
  'webhooks listen': ['webhooks listen --forward-to http://127.0.0.1:9000/hook --print'],
  'events list': ['events list', 'events list --after 0 --json'],
  'migrate status': ['migrate status'],
  'migrate up': ['migrate up'],
  'backup create': ['backup create', 'backup create --to /mnt/elsewhere --json'],
  'backup verify': [
    'backup verify',
    'backup verify flowhook-2026-11-21T040503Z-v8.db',
    'backup verify --database postgres://db.example.com/restored',
  ],
  'backup restore': ['backup restore flowhook-2026-11-21T040503Z-v8.db --force'],
  'backup list': ['backup list', 'backup list /mnt/elsewhere'],
  'database copy': [
    'database copy --from sqlite:/srv/data/flowhook.db --to postgres://db.example.com/flowhook',
    'database copy --to sqlite:/srv/data/flowhook.db --json',
  ],
  'config print': ['config print --show-origin', 'config print --port 9000 --json'],
  'config check': ['config check', 'config check --host 0.0.0.0 --json'],
  'keys create': [
    'keys create --team default',
    'keys create --team acme --scopes read --expires-in 90 --name dashboard',
  ],
  'keys list': ['keys list', 'keys list --team acme'],
  'keys revoke': ['keys revoke KEY'],
  'audit list': ['audit list', 'audit list --team acme --action keys.create --since 2026-11-01 --json'],
  'teams list': ['teams list'],
  'teams create': ['teams create acme'],
  'teams quotas': ['teams quotas', 'teams quotas acme'],
  'teams set-quota': [
    'teams set-quota acme records 1000000',
    'teams set-quota acme storedBytes 10GB',
    'teams set-quota acme workflows default',
  ],
  'teams delete': ['teams delete acme', 'teams delete acme --yes --export /backups/acme'],
  login: ['login https://flowhook.example.com', 'login http://127.0.0.1:8080 --profile local < key.txt'],
  logout: ['logout', 'logout --profile local'],
  profiles: ['profiles'],
  dashboard: ['dashboard', 'dashboard --team acme --public-url https://flowhook.example.com'],
  completion: [
    'completion bash >> ~/.bashrc',
    'completion zsh > ~/.zfunc/_flowhook',
    'completion fish > ~/.config/fish/completions/flowhook.fish',
  ],
};
