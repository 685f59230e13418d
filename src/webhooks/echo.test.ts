/** Masking credentials that an endpoint echoes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hideEchoes } from './destination.ts';

test('masks a value as sent, without its scheme, in JSON and in a URL', () => {
  const hide = hideEchoes(['Bearer t0ken-of-mine', 'a "quoted" value', 'key=1&2/3+4']);
  assert.equal(hide('got Bearer t0ken-of-mine'), 'got ***');
  assert.equal(hide('t0ken-of-mine, t0ken-of-mine'), '***, ***');
  assert.equal(hide(JSON.stringify({ header: 'a "quoted" value' })), '{"header":"***"}');
  assert.equal(hide('/next?key%3D1%262%2F3%2B4'), '/next?***');
});

test('masks user and password of Basic authentication, and the password alone', () => {
  const basic = `Basic ${Buffer.from('ada:love-lace').toString('base64')}`;
  const hide = hideEchoes([basic]);
  assert.equal(
    hide(`${basic} / ${basic.slice(6)} / ada:love-lace / love-lace / ada`),
    '*** / *** / *** / *** / ada',
  );
});

test('masks a value that is truncated at the end', () => {
  const hide = hideEchoes(['0123456789abcdef']);
  assert.equal(hide('you sent 0123456789ab'), 'you sent ***');
  assert.equal(hide('you sent 0123456'), 'you sent 0123456', 'too short to be sure');
});

test('does not mask short values, which also occur in ordinary text', () => {
  const text = 'it is true that flowhook sent 1 of 2';
  assert.equal(hideEchoes(['true', '1', 'flowhoo', ''])(text), text);
  assert.equal(hideEchoes([])(text), text);
});
