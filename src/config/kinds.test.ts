/** Each kind of setting: the values it accepts and rejects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  duration,
  durationOrOff,
  listenHost,
  oneOf,
  onOff,
  origins,
  path,
  type Setting,
  unset,
  whole,
} from './kinds.ts';
import { SETTINGS } from './settings.ts';

const read = (setting: Setting<unknown>, written: string) => setting.read(written, '/srv');

test('a whole number is accepted from the lower to the upper bound', () => {
  const setting = whole(2, 10, 5, 'How many.');
  assert.deepEqual(
    ['2', '10', '1', '11', '-3', '2.5', '1e1', '', ' 3', 'x'].map((written) => read(setting, written)),
    [2, 10, ...Array(8).fill(undefined)],
  );
  assert.deepEqual([setting.default, setting.expected], ['5', 'a whole number from 2 to 10']);
});

test('a duration requires a unit and is converted to milliseconds', () => {
  const setting = duration('1s', '1d', '15m', 'How long.');
  assert.deepEqual(
    ['1s', '90m', '1d', '999ms', '25h', '15', 'off', '1 h'].map((written) => read(setting, written)),
    [1_000, 5_400_000, 86_400_000, ...Array(5).fill(undefined)],
  );
  const orOff = durationOrOff('1s', '1d', 'off', 'How often.');
  assert.deepEqual(
    ['off', '2s', '0s'].map((written) => read(orOff, written)),
    [null, 2_000, undefined],
  );
  assert.match(orOff.expected, /^off, or a time from 1s to 1d/);
  assert.equal(orOff.unit, 'Ms');
});

test('words, switches, paths, origins and hosts are parsed', () => {
  assert.equal(read(oneOf(['a', 'b'], 'a', 'Which.'), 'b'), 'b');
  assert.equal(read(oneOf(['a', 'b'], 'a', 'Which.'), 'c'), undefined);
  assert.deepEqual(
    ['on', 'off', 'true'].map((written) => read(onOff('on', 'Whether.'), written)),
    [true, false, undefined],
  );
  assert.equal(read(path('file', unset('none', 'a'), 'Where.'), 'certs/a.pem'), '/srv/certs/a.pem');
  assert.equal(read(path('file', unset('none', 'a'), 'Where.'), '/etc/a.pem'), '/etc/a.pem');
  const pages = origins(unset('none', '*'), 'Which.');
  assert.deepEqual(read(pages, 'https://a.test, * ,,http://b.test:1'), [
    'https://a.test',
    '*',
    'http://b.test:1',
  ]);
  assert.equal(read(pages, 'https://a.test,https://a.test/path'), undefined);
  assert.deepEqual(pages.absent, []);
  assert.deepEqual(
    ['::1', 'example.com', 'a/b', ''].map((written) => listenHost.read(written, '/srv')),
    ['::1', 'example.com', undefined, undefined],
  );
});

test('every default and every example is a valid value of its setting', () => {
  for (const setting of SETTINGS) {
    const { name, default: preset, byDefault, example, secret } = setting;
    assert.ok(preset !== undefined || byDefault !== undefined, `${name} describes its default`);
    if (preset !== undefined) assert.notEqual(read(setting, preset), undefined, name);
    if (secret !== true) assert.notEqual(read(setting, example), undefined, name);
  }
});

test('names of settings are unique, also with _FILE appended', () => {
  const names = SETTINGS.map(({ name }) => name.toLowerCase());
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.ok(!names.includes(`${name}file`), name);
});
