/** The steps of the GitHub workflow, in bash with the options of a runner. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parse } from 'yaml';
import { inPath } from '../../../test/support/in-path.ts';
import { KEY, PEOPLE, program, type Service, startService } from '../service.ts';

interface Job {
  env: Record<string, string>;
  steps: { name?: string; id?: string; env?: Record<string, string>; run?: string; uses?: string }[];
}

const file = await readFile(join(import.meta.dirname, 'flowhook.yml'), 'utf8');
const workflow = parse(file) as { on: object; jobs: { run: Job } };
const missing = ['bash', 'curl', 'jq'].filter((name) => inPath(name) === undefined);
const options = { skip: missing.length > 0 && `not installed here: ${missing.join(', ')}` };

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service?.stop());

test('a run queues a job, waits until it ends and downloads its records', options, async () => {
  const run = await runSteps('people', '1');
  assert.equal(run.failed, undefined, run.errors);
  const [head, ...lines] = (await readFile(join(run.directory, 'records.csv'), 'utf8'))
    .trimEnd()
    .split('\r\n');
  assert.equal(head, 'id,name,email');
  assert.equal(lines.length, PEOPLE.length);
  assert.match(
    await readFile(join(run.directory, 'summary'), 'utf8'),
    /### people: finished\n\nRecords: 3\./,
  );

  const again = await runSteps('people', '1');
  assert.equal(again.outputs.job, run.outputs.job, 'the same attempt finds its own job');
  assert.notEqual((await runSteps('people', '2')).outputs.job, run.outputs.job);
});

test('a run fails if its job fails, or if there is no such workflow', options, async () => {
  const broken = await runSteps('broken', '3');
  assert.equal(broken.failed, 'Wait for its end');
  assert.match(broken.output, /^::error::failed: .*the disk is full/m);
  const unknown = await runSteps('../unknown', '4');
  assert.equal(unknown.failed, 'Queue a job');
  assert.match(unknown.output, /^::error::No workflow found \(404\)/m);
});

/** Runs the `run` blocks in order, until one fails. */
async function runSteps(workflowId: string, attempt: string) {
  const directory = await mkdtemp(join(service.directory, 'runner-'));
  const outputFile = join(directory, 'output');
  const outputs: Record<string, string> = {};
  const ended = { directory, outputs, failed: undefined as string | undefined, output: '', errors: '' };
  const values = () => ({
    'vars.FLOWHOOK_URL': service.url,
    'secrets.FLOWHOOK_KEY': KEY,
    "inputs.workflow || 'people'": workflowId,
    'github.run_id': '7001',
    'github.run_attempt': attempt,
    ...Object.fromEntries(
      Object.entries(outputs).map(([name, value]) => [`steps.queue.outputs.${name}`, value]),
    ),
  });
  for (const step of workflow.jobs.run.steps) {
    if (step.run === undefined) continue;
    assert.doesNotMatch(step.run, /\$\{\{/, 'what comes from outside is never pasted into a script');
    await writeFile(outputFile, '');
    const environment = Object.entries({ ...workflow.jobs.run.env, ...step.env }).map(
      ([name, text]) => [name, filled(text, values())] as const,
    );
    const script = join(directory, 'step.sh');
    await writeFile(script, step.run);
    const { status, output, errors } = await program(
      ['bash', '--noprofile', '--norc', '-eo', 'pipefail', script],
      { url: service.url, directory },
      {
        ...Object.fromEntries(environment),
        EVERY: '0.1',
        GITHUB_OUTPUT: outputFile,
        GITHUB_STEP_SUMMARY: join(directory, 'summary'),
      },
    );
    ended.output += output;
    ended.errors += errors;
    for (const line of (await readFile(outputFile, 'utf8')).split('\n').filter(Boolean)) {
      const at = line.indexOf('=');
      outputs[line.slice(0, at)] = line.slice(at + 1);
    }
    if (status !== 0) {
      ended.failed = step.name;
      break;
    }
  }
  return ended;
}

function filled(text: string, values: Record<string, string>): string {
  return text.replace(/\$\{\{ (.*?) \}\}/g, (_, expression: string) => {
    const value = values[expression];
    assert.ok(value !== undefined, `The test does not know the expression ${expression}`);
    return value;
  });
}
