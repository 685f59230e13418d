/** Rules as requests write them, and the sentences about their mistakes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DEFAULT_RULE,
  digestFields,
  durationText,
  FORMATS,
  hasRule,
  isForPeople,
  type Rule,
  RuleMistake,
  storedRule,
  timeZoneOf,
} from './rule.ts';
import { effectiveFirstVersion, ruleFrom } from './rule-fields.ts';

const PRICE = 'record.price < 50';
const FORMS = '{ "every": "1h" } or { "at": "08:00", "timeZone": "Europe/Zurich" }';

function mistakeOf(fields: Record<string, unknown>, before?: Rule): RuleMistake {
  try {
    ruleFrom(fields, before);
  } catch (error) {
    if (error instanceof RuleMistake) return error;
    throw error;
  }
  return assert.fail('the rule was accepted');
}

test('a request without fields of a rule makes no rule', () => {
  assert.deepEqual(ruleFrom({ webhookUrl: 'https://example.com', filter: undefined }), DEFAULT_RULE);
  assert.equal(hasRule(DEFAULT_RULE), false);
  assert.equal(hasRule(ruleFrom({ filter: PRICE })), true);
  assert.equal(hasRule(ruleFrom({ format: 'cloudevents' })), true);
});

test('fields that are not given keep their value, and null resets them', () => {
  const before = ruleFrom({ filter: PRICE, cooldown: '6h', firstVersion: 'send', format: 'cloudevents' });
  assert.deepEqual(before, {
    filter: PRICE,
    format: 'cloudevents',
    template: null,
    firstVersion: 'send',
    cooldownMs: 21_600_000,
    digest: null,
    timeZone: null,
  });
  assert.deepEqual(ruleFrom({ format: null }, before), { ...before, format: 'standard' });
  assert.deepEqual(ruleFrom({ cooldown: null, firstVersion: null }, before), {
    ...before,
    cooldownMs: null,
    firstVersion: null,
  });
  assert.deepEqual(
    ruleFrom({ filter: null, cooldown: null, firstVersion: null, format: null }, before),
    DEFAULT_RULE,
  );
});

test('the first version is skipped if the filter reads records, unless the rule says otherwise', () => {
  assert.equal(effectiveFirstVersion(DEFAULT_RULE), 'send');
  assert.equal(effectiveFirstVersion(ruleFrom({ filter: 'event.type == "workflow_failed"' })), 'send');
  assert.equal(effectiveFirstVersion(ruleFrom({ filter: PRICE })), 'skip');
  assert.equal(effectiveFirstVersion(ruleFrom({ filter: PRICE, firstVersion: 'send' })), 'send');
});

test('a cooldown lasts from a second to seven days', () => {
  for (const [text, ms] of Object.entries({
    '1s': 1_000,
    '90s': 90_000,
    '30m': 1_800_000,
    '6h': 21_600_000,
    '7d': 604_800_000,
  })) {
    assert.equal(ruleFrom({ filter: PRICE, cooldown: text }).cooldownMs, ms);
    assert.equal(durationText(ms), text);
  }
  for (const cooldown of ['0s', '999ms', '8d', '6', '6 hours', 6, '']) {
    assert.equal(
      mistakeOf({ filter: PRICE, cooldown }).message,
      '`cooldown`: must be a duration from "1s" to "7d", such as "90s", "30m" or "6h"',
    );
  }
});

test('cooldown and a skipped first version need a filter that reads records', () => {
  assert.match(
    mistakeOf({ cooldown: '6h' }).message,
    /^`cooldown`: .* set a filter such as `record\.price < 50`$/,
  );
  const ofEvents = { filter: 'event.type == "workflow_failed"' };
  assert.match(mistakeOf({ ...ofEvents, cooldown: '6h' }).message, /this filter reads no record$/);
  assert.match(mistakeOf({ firstVersion: 'skip' }).message, /^`firstVersion`: "skip" only applies/);
  assert.deepEqual(ruleFrom({ firstVersion: 'send' }), DEFAULT_RULE);
  assert.equal(mistakeOf({ filter: null }, ruleFrom({ filter: PRICE, cooldown: '6h' })).field, 'cooldown');
});

test('a template and the format template need each other', () => {
  const template = { text: `\${record.title}` };
  const rule = ruleFrom({ format: 'template', template });
  assert.deepEqual(rule.template, template);
  assert.equal(
    mistakeOf({ template }).message,
    '`template`: is only used with `"format": "template"`; set both',
  );
  assert.equal(
    mistakeOf({ format: 'template' }).message,
    '`template`: is required with `"format": "template"`',
  );
  assert.equal(mistakeOf({ template: null }, rule).field, 'template');
  assert.deepEqual(ruleFrom({ format: 'standard' }, rule), DEFAULT_RULE);
  assert.deepEqual(ruleFrom({ template: 'x' }, rule).template, 'x');
});

test('a mistake names the field, the place, and the nearest right name', () => {
  const filter = mistakeOf({ filter: 'true && rekord.price < 50' });
  assert.equal(
    filter.message,
    '`filter`: The name `rekord` is unknown (at character 9); did you mean "record"?',
  );
  assert.deepEqual([filter.code, filter.field, filter.from, filter.to], ['field_invalid', 'filter', 8, 14]);
  assert.equal(
    mistakeOf({ format: 'cloudevent' }).message,
    '`format`: must be "standard", "cloudevents", "template", "slack", "discord", "teams" or "mail"; did you mean "cloudevents"?',
  );
  assert.equal(mistakeOf({ firstVersion: 'never' }).message, '`firstVersion`: must be "send" or "skip"');
  assert.equal(mistakeOf({ filter: 5 }).message, '`filter`: must be an expression in a string, or null');
  assert.match(mistakeOf({ filter: 'x'.repeat(4_097) }).message, /^`filter`: .* at most 4,096 characters/);
  assert.equal(
    mistakeOf({ format: 'template', template: { a: [`\${rekord.x}`] } }).message,
    `\`template\`: The name \`rekord\` is unknown (at character 1); did you mean "record"?, in \${rekord.x} of a[0]`,
  );
  assert.equal(
    mistakeOf({ format: 'template', template: { a: `\${x` } }).message,
    `\`template\`: A \${ has no closing } of a`,
  );
});

test('a filter that another version of this program has saved may be invalid: its webhook can be read and changed', () => {
  const stored = { ...DEFAULT_RULE, filter: 'price.of < 5', cooldownMs: 60_000 };
  assert.equal(effectiveFirstVersion(stored), 'skip');
  assert.equal(ruleFrom({ cooldown: '2m' }, stored).cooldownMs, 120_000);
});

test('a rule of an earlier version has neither a digest nor a zone', () => {
  const text = '{"filter":null,"format":"cloudevents","template":null,"firstVersion":null,"cooldownMs":null}';
  assert.deepEqual(storedRule(text), { ...DEFAULT_RULE, format: 'cloudevents' });
});

test('four formats are for people, whose times are in the zone of the rule, of its digest, or UTC', () => {
  assert.deepEqual(FORMATS.filter(isForPeople), ['slack', 'discord', 'teams', 'mail']);
  assert.equal(timeZoneOf(DEFAULT_RULE), 'UTC');
  const digest = { at: '08:00', timeZone: 'Europe/Zurich' };
  assert.equal(timeZoneOf({ timeZone: null, digest }), 'Europe/Zurich');
  assert.equal(timeZoneOf({ timeZone: 'Asia/Tokyo', digest }), 'Asia/Tokyo');
  assert.equal(timeZoneOf({ timeZone: null, digest: { everyMs: 60_000 } }), 'UTC');
});

test('a digest is a period or a time of day, in UTC unless it names a zone', () => {
  const digestOf = (digest: unknown) => ruleFrom({ digest }).digest;
  assert.deepEqual(digestOf({ every: '1h' }), { everyMs: 3_600_000 });
  assert.deepEqual(digestOf({ every: '7d' }), { everyMs: 604_800_000 });
  assert.deepEqual(digestOf({ at: '08:00' }), { at: '08:00', timeZone: 'UTC' });
  const zurich = { at: '08:00', timeZone: 'Europe/Zurich' };
  assert.deepEqual(digestOf(zurich), zurich);
  assert.deepEqual(digestFields({ everyMs: 5_400_000 }), { every: '90m' });
  assert.deepEqual(digestFields(zurich), zurich);
  assert.equal(hasRule(ruleFrom({ digest: zurich })), true);
  const before = ruleFrom({ digest: zurich, filter: PRICE });
  assert.deepEqual(ruleFrom({ format: 'slack' }, before).digest, zurich);
  assert.equal(ruleFrom({ digest: null }, before).digest, null);
});

test('the refusal of a digest shows the nearest right form', () => {
  for (const [digest, message] of [
    ['1h', 'must be { "every": "1h" }, or null for no digest'],
    ['2 hours', 'must be { "every": "2h" }, or null for no digest'],
    ['daily', 'must be { "every": "1d" }, or null for no digest'],
    ['8:00', 'must be { "at": "08:00" }, or null for no digest'],
    ['5pm', 'must be { "at": "17:00" }, or null for no digest'],
    [3_600, `must be ${FORMS}, or null for no digest`],
    ['soon', `must be ${FORMS}, or null for no digest`],
    [{}, `must have either \`every\` or \`at\`, found neither: write ${FORMS}`],
    [{ every: '1h', at: '08:00' }, `must have either \`every\` or \`at\`, found both: write ${FORMS}`],
    [
      { every: '1h', timeZone: 'UTC' },
      '`timeZone` belongs to `at`. The field `timeZone` of the webhook sets the zone of times in messages',
    ],
    [{ every: '30s' }, '`every` must be a duration from "1m" to "7d", such as "30m" or "1h"'],
    [
      { every: '1 hour' },
      '`every` must be a duration from "1m" to "7d", such as "30m" or "1h"; did you mean { "every": "1h" }?',
    ],
    [
      { at: '8:00' },
      '`at` must be a time from "00:00" to "23:59", such as "08:00", found "8:00"; did you mean { "at": "08:00" }?',
    ],
    [
      { at: 8 },
      '`at` must be a time from "00:00" to "23:59", such as "08:00", found "8"; did you mean { "at": "08:00" }?',
    ],
    [{ at: '24:00' }, '`at` must be a time from "00:00" to "23:59", such as "08:00", found "24:00"'],
    [
      { at: '08:00', timeZone: 'Europe/Zürich' },
      '`timeZone` must be a time zone such as Europe/Berlin or UTC, found "Europe/Zürich"; did you mean "Europe/Zurich"?',
    ],
    [
      { at: '08:00', timeZone: 'new york' },
      '`timeZone` must be a time zone such as Europe/Berlin or UTC, found "new york"; did you mean "America/New_York"?',
    ],
  ] as const) {
    const mistake = mistakeOf({ digest });
    assert.deepEqual([mistake.field, mistake.message], ['digest', `\`digest\`: ${message}`]);
  }
});

test('a digest and a cooldown exclude each other, and the refusal says how to remove the other', () => {
  const cooled = ruleFrom({ filter: PRICE, cooldown: '6h' });
  const gathering = ruleFrom({ filter: PRICE, digest: { every: '1h' } });
  const start = 'a digest already gathers what happens to a record into one message: remove the';
  assert.equal(
    mistakeOf({ digest: { every: '1h' } }, cooled).message,
    `\`digest\`: ${start} cooldown with \`"cooldown": null\``,
  );
  assert.equal(
    mistakeOf({ cooldown: '6h' }, gathering).message,
    `\`cooldown\`: ${start} digest with \`"digest": null\``,
  );
  assert.deepEqual(ruleFrom({ digest: { every: '1h' }, cooldown: null }, cooled), gathering);
});

test('the zone of times belongs to messages for people, and goes with their format', () => {
  const rule = ruleFrom({ format: 'slack', timeZone: 'Asia/Tokyo' });
  assert.equal(rule.timeZone, 'Asia/Tokyo');
  assert.equal(ruleFrom({ format: 'discord' }, rule).timeZone, 'Asia/Tokyo');
  assert.deepEqual(ruleFrom({ format: null }, rule), DEFAULT_RULE);
  assert.equal(ruleFrom({ timeZone: null }, rule).timeZone, null);
  assert.equal(
    mistakeOf({ timeZone: 'Asia/Tokyo' }).message,
    '`timeZone`: sets the times in messages for people; the format "standard" has times in UTC. Use it with "slack", ' +
      '"discord", "teams" or "mail", or omit it',
  );
  assert.equal(
    mistakeOf({ timeZone: 'Tokyo' }, rule).message,
    '`timeZone`: must be a time zone such as Europe/Berlin or UTC, found "Tokyo"; did you mean "Asia/Tokyo"?',
  );
  assert.match(mistakeOf({ timeZone: 9 }, rule).message, /must be the name of a time zone/);
});

test('a webhook that sends mail has the format mail, and no other has it', () => {
  const mail = 'mailto:ops@example.org';
  const hook = 'https://example.org/hook';
  assert.deepEqual(ruleFrom({}, DEFAULT_RULE, mail), { ...DEFAULT_RULE, format: 'mail' });
  assert.equal(ruleFrom({ format: null, timeZone: 'Asia/Tokyo' }, DEFAULT_RULE, mail).timeZone, 'Asia/Tokyo');
  const stored = ruleFrom({ format: 'mail' }, DEFAULT_RULE, mail);
  assert.equal(ruleFrom({ filter: PRICE }, stored, mail).format, 'mail');
  const of = (fields: object, url: string) => () => ruleFrom({ ...fields }, DEFAULT_RULE, url);
  const only = { message: '`format`: a webhook that sends mail has the format "mail": omit `format`' };
  assert.throws(of({ format: 'slack' }, mail), only);
  assert.throws(of({ format: 'standard' }, mail), only);
  assert.throws(of({ format: 'template', template: 'x' }, mail), only);
  assert.throws(of({ format: 'mail' }, hook), {
    message: '`format`: "mail" needs a `webhookUrl` such as "mailto:ops@example.org"',
  });
  assert.equal(ruleFrom({ format: 'mail' }).format, 'mail', 'a trial has no URL');
});
