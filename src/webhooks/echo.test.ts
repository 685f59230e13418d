/** What an endpoint sends back of what it was sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hideEchoes } from './destination.ts';

test('hides a value as it was sent, without its scheme, in JSON and in an address', () => {
  const hide = hideEchoes(['Bearer t0ken-of-mine', 'a "quoted" value', 'key=1&2/3+4']);
  assert.equal(hide('got Bearer t0ken-of-mine'), 'got ***');
  assert.equal(hide('t0ken-of-mine, t0ken-of-mine'), '***, ***');
  assert.equal(hide(JSON.stringify({ header: 'a "quoted" value' })), '{"header":"***"}');
  assert.equal(hide('/next?key%3D1%262%2F3%2B4'), '/next?***');
});

test('hides user and password of Basic, together and the password alone', () => {
  const basic = `Basic ${Buffer.from('ada:love-lace').toString('base64')}`;
  const hide = hideEchoes([basic]);
  assert.equal(
    hide(`${basic} / ${basic.slice(6)} / ada:love-lace / love-lace / ada`),
    '*** / *** / *** / *** / ada',
  );
});

test('hides a value that is cut off at the end', () => {
  const hide = hideEchoes(['0123456789abcdef']);
  assert.equal(hide('you sent 0123456789ab'), 'you sent ***');
  assert.equal(hide('you sent 0123456'), 'you sent 0123456', 'too short to tell');
});

test('leaves ordinary text alone: short values are not hidden', () => {
  const text = 'it is true that flowhook sent 1 of 2';
  assert.equal(hideEchoes(['true', '1', 'flowhoo', ''])(text), text);
  assert.equal(hideEchoes([])(text), text);
});
