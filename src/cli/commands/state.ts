/** `flowhook state show|set|reset`: the state that the source of a workflow keeps from run to run. */
import { parseAsWritten } from '../../std/exact-json.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../exit.ts';
import { oneLine } from '../job-words.ts';
import { jsonFrom, type Options, parsedJson } from '../options.ts';
import { onTarget, onWorkflow, type Target, type TargetTeam } from '../target.ts';
import { addYes, confirm, print, say } from '../terminal.ts';

const MAX_SHOWN = 200;
/** A cursor may be a number that a double would round. */
const EXACT = { parse: parseAsWritten };

export function addState(program: Command): void {
  const state = program
    .command('state')
    .description('show, set and reset the state that a source keeps from run to run, such as a cursor');
  const one = (name: string, description: string) =>
    state
      .command(name)
      .description(description)
      .argument('<workflow>', 'id of the workflow')
      .option('--team <slug>', 'team of the workflow, if several teams have a workflow with this id');

  onTarget(
    one('show', 'print the state as JSON; null if there is none').withExamples(
      'state show people',
      'state show people > state.json',
    ),
    showState,
  );
  const set = one('set', 'replace the state; the next run starts from the new one')
    .argument('[state]', 'the state as JSON')
    .option('--file <path>', 'read the state from this file; - reads standard input')
    .withExamples(`state set people '{"since": "2026-01-01"}'`, 'state set people --file state.json --yes');
  onTarget(addYes(set), setState, { check: (_workflow, state, options) => checkPlace(state, options) });
  const reset = one('reset', 'remove the state, so that the next run starts like the first').withExamples(
    'state reset people',
    'state reset people --yes',
  );
  onTarget(addYes(reset), resetState);
}

async function showState(target: Target, workflow: string, options: Options): Promise<void> {
  const { state } = await onWorkflow(target, workflow, ({ client }, id) => client.workflows.state(id, EXACT));
  print(options, state, [JSON.stringify(state, null, 2)]);
}

async function setState(
  target: Target,
  workflow: string,
  argument: string | undefined,
  options: Options,
): Promise<void> {
  const state =
    argument === undefined
      ? await jsonFrom('--file', String(options.file))
      : parsedJson('The state', argument);
  await onWorkflow(target, workflow, (team, id) => replace(team, id, { state, verb: 'set' }, options));
}

function resetState(target: Target, workflow: string, options: Options): Promise<void> {
  return onWorkflow(target, workflow, (team, id) =>
    replace(team, id, { state: null, verb: 'reset' }, options),
  );
}

/** Changes the state that the user has confirmed to lose, and prints that state, so that it can be set again. */
async function replace(
  { client }: TargetTeam,
  id: string,
  { state, verb }: { state: unknown; verb: 'set' | 'reset' },
  options: Options,
): Promise<void> {
  const { state: previous, etag } = await client.workflows.state(id, EXACT);
  if (previous !== null) {
    await confirm(options, {
      what: `The state of ${id} will be ${verb === 'set' ? 'replaced' : 'removed'}: ${oneLine(JSON.stringify(previous), MAX_SHOWN)}`,
      otherwise: 'the state was not changed',
    });
  }
  const bound = etag === null ? {} : { ifMatch: etag };
  if (verb === 'set') await client.workflows.setState(id, state, bound);
  else await client.workflows.resetState(id, bound);
  print(options, { workflowId: id, state, previous }, [`${verb} the state of ${id}`]);
  say(`To run from it, use \`flowhook run ${id}\``);
}

/** @throws UsageError */
function checkPlace(state: unknown, { file }: Options): void {
  if ((state === undefined) !== (file === undefined)) return;
  throw new UsageError('Give the state either as an argument, or with --file');
}
