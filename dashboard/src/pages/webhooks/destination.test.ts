/** Tests the choice of a destination by its address, and what is wrong with an address. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressOf, addressRemark, chatOf, meantKind, urlFrom } from './destination.ts';

test('recognizes the addresses that Slack, Discord and Teams give out', () => {
  assert.equal(chatOf('https://hooks.slack.com/services/T0/B0/x'), 'slack');
  assert.equal(chatOf('https://discord.com/api/webhooks/1/x'), 'discord');
  assert.equal(chatOf('https://prod-12.westeurope.logic.azure.com:443/workflows/x'), 'teams');
  assert.equal(chatOf('https://hooks.slack.com.evil.example/services'), undefined);
  assert.equal(chatOf('ops@example.org'), undefined);
});

test('chooses the destination that a pasted address belongs to, and keeps the choice otherwise', () => {
  assert.equal(meantKind('http', 'https://hooks.slack.com/services/T0/B0/x'), 'slack');
  assert.equal(meantKind('discord', 'https://hooks.slack.com/services/T0/B0/x'), 'slack');
  assert.equal(meantKind('http', 'mailto:ops@example.org'), 'mail');
  assert.equal(meantKind('slack', 'https://chat.example.org/hooks/x'), 'slack');
  assert.equal(meantKind('http', 'https://example.org/'), 'http');
});

test('writes a mail address as a URL, and asks for exactly one address', () => {
  assert.equal(urlFrom('mail', ' ops@example.org '), 'mailto:ops@example.org');
  assert.equal(urlFrom('mail', 'mailto:ops@example.org'), 'mailto:ops@example.org');
  assert.equal(urlFrom('mail', 'a/b%c@example.org'), 'mailto:a%2Fb%25c@example.org');
  assert.equal(addressOf('mailto:a%2Fb%25c@example.org'), 'a/b%c@example.org');
  assert.equal(addressOf('https://example.org/a%20b'), 'https://example.org/a%20b');
  assert.deepEqual(addressRemark('mail', 'ops@example.org'), {});
  for (const wrong of ['ops', 'ops@', 'a@example.org, b@example.org', 'Ops <ops@example.org>'])
    assert.match(addressRemark('mail', wrong).mistake ?? '', /one mail address/, wrong);
});

test('warns about a chat address of another host, but accepts it', () => {
  assert.deepEqual(addressRemark('slack', 'https://hooks.slack.com/services/T0/B0/x'), {});
  const { mistake, hint } = addressRemark('slack', 'https://chat.example.org/hooks/x');
  assert.equal(mistake, undefined);
  assert.match(hint ?? '', /Slack/);
  assert.match(addressRemark('teams', 'nothing').mistake ?? '', /complete URL/);
});
