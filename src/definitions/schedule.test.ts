/** Valid schedules, and the mistakes in others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseYamlDefinition } from './definition.ts';

const SOURCE = 'source: { type: command, command: ["true"] }\n';

function read(text: string) {
  const parsed = parseYamlDefinition(`${SOURCE}${text}`, { file: 'acme/crm.yaml' });
  if ('definition' in parsed) return parsed.definition.schedule;
  return parsed.mistakes.map(({ line, message }) => `${line}: ${message}`);
}

test('a schedule is a cron expression, with or without a time zone, or an interval', () => {
  const cron = { cron: '0 6 * * *', timezone: 'UTC', missed: 'run' };
  assert.deepEqual(read('schedule: "0 6 * * *"'), cron);
  assert.deepEqual(read('schedule: { cron: "0 6 * * *" }'), cron);
  assert.deepEqual(read('schedule: { cron: "0 6 * * *", timezone: Europe/Berlin, missed: skip }'), {
    ...cron,
    timezone: 'Europe/Berlin',
    missed: 'skip',
  });
  assert.deepEqual(read('schedule: { every: 15m }'), { everyMs: 900_000, missed: 'run' });
  assert.deepEqual(read('schedule: { every: 366d, missed: skip }'), {
    everyMs: 366 * 86_400_000,
    missed: 'skip',
  });
  assert.equal(read('schedule:'), null);
});

const EITHER =
  'must have either `cron`, such as { cron: "0 6 * * 1-5", timezone: Europe/Berlin }, or `every`, such as { every: 15m }';
const EVERY = 'must be a duration such as 15m, 6h or 1d, from 1m to 366d';

const CASES: [text: string, mistake: RegExp | string][] = [
  ['schedule: 15m', '2: `schedule` must be a cron expression or a map. Write { every: 15m }'],
  ['schedule: { every: 15 }', `2: \`schedule.every\` ${EVERY}, found the number 15. Add a unit`],
  ['schedule: { every: 59s }', `2: \`schedule.every\` ${EVERY}, found "59s"`],
  ['schedule: { every: 367d }', `2: \`schedule.every\` ${EVERY}, found "367d"`],
  ['schedule: {}', `2: \`schedule\` ${EITHER}`],
  ['schedule: { missed: run }', `2: \`schedule\` ${EITHER}`],
  ['schedule: { cron: "0 6 * * *", every: 1h }', `2: \`schedule\` ${EITHER}`],
  ['schedule: 5', '2: `schedule` must be a map of settings, found the number 5'],
  ['schedule:\n  every: 1h\n  timezone: UTC', /^4: `schedule\.timezone` cannot be used with `every`/],
  ['schedule:\n  every: 1h\n  missed: once', /^4: `schedule\.missed` must be run or skip, found "once"/],
  ['schedule:\n  every: 1h\n  tz: UTC', /^4: `schedule\.tz` is not a known setting/],
  ['schedule: "0 6 * *"', /^2: `schedule` must be five fields/],
  ['schedule:\n  cron: "61 6 * * *"', /^3: `schedule\.cron` must be a cron expression/],
  ['schedule:\n  cron: "0 6 31 2 *"', /^3: `schedule\.cron` must match some date/],
  [
    'schedule:\n  cron: "0 6 * * *"\n  timezone: Berlin',
    /^4: `schedule\.timezone` must be a time zone such as Europe\/Berlin or UTC, found "Berlin"/,
  ],
];

for (const [text, mistake] of CASES) {
  test(`reports the mistake in ${JSON.stringify(text)}`, () => {
    const mistakes = read(text);
    assert.ok(Array.isArray(mistakes) && mistakes.length === 1, JSON.stringify(mistakes));
    if (typeof mistake === 'string') assert.equal(mistakes[0], mistake);
    else assert.match(mistakes[0] ?? '', mistake);
  });
}
