/** Under which names a route that needs no key answers. */
import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { isOwnHost } from './metrics-access.ts';

const PUBLIC = 'https://hooks.example.com/';

test('names that no stranger can have lead here are this machine’s', () => {
  for (const host of [
    undefined,
    '127.0.0.1',
    '127.0.0.1:8080',
    '[::1]:8080',
    '192.168.1.7:8080',
    'localhost:8080',
    'LOCALHOST.',
    'flowhook:8080',
    'node.local',
    'flowhook.team.svc.cluster.local:8080',
    hostname(),
    'hooks.example.com',
    'Hooks.Example.com:443',
  ])
    assert.ok(isOwnHost(host, PUBLIC), `${host}`);
});

test('any other name may be a stranger’s', () => {
  for (const host of [
    'evil.example',
    'evil.example:8080',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'hooks.example.com.evil.example',
    'notlocal.example',
    'example.com',
  ]) {
    assert.ok(!isOwnHost(host, PUBLIC), host);
    assert.ok(!isOwnHost(host, ''), host);
  }
});
