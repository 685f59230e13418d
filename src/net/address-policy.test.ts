/** Which addresses each setting allows, in all their spellings. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { embeddedIpv4, parseAllowNetworks } from './address-policy.ts';

function allows(setting: string, address: string): boolean {
  return parseAllowNetworks(setting).verdict(address).allowed;
}

const PUBLIC = ['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2001:4860:4860::8888'];
const LOOPBACK = [
  '127.0.0.1',
  '127.255.255.254',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '64:ff9b::7f00:1',
];
const PRIVATE = ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fd12:3456::1', '2002:0a00:1::1'];
const GUARDED = [
  '169.254.169.254',
  '::ffff:169.254.169.254',
  '64:ff9b::a9fe:a9fe',
  'fe80::1',
  'fe80::1%eth0',
  'fd00:ec2::254',
  '168.63.129.16',
  '100.100.100.200',
];
const SPECIAL = [
  '0.0.0.0',
  '::',
  '100.64.0.1',
  '192.0.0.8',
  '192.0.2.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '192.88.99.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '::7f00:1',
  '64:ff9b:1::7f00:1',
  '100::1',
  '2001::1',
  '2001:db8::1',
  '3fff::1',
  '4000::1',
  '5f00::1',
  'fec0::1',
  'ff02::1',
];

test('`none` allows public addresses and nothing else', () => {
  for (const address of PUBLIC) assert.ok(allows('none', address), address);
  for (const address of [...LOOPBACK, ...PRIVATE, ...GUARDED, ...SPECIAL]) {
    assert.ok(!allows('none', address), address);
  }
});

test('`loopback` and `private` allow only their ranges, in every spelling', () => {
  for (const address of LOOPBACK) {
    assert.ok(allows('loopback', address), address);
    assert.ok(!allows('private', address), address);
  }
  for (const address of PRIVATE) {
    assert.ok(allows('private', address), address);
    assert.ok(!allows('loopback', address), address);
  }
  for (const address of [...GUARDED, ...SPECIAL]) assert.ok(!allows('loopback,private', address), address);
});

test('an address or a network allows itself', () => {
  assert.ok(allows('10.1.2.3', '10.1.2.3'));
  assert.ok(!allows('10.1.2.3', '10.1.2.4'));
  assert.ok(allows(' 10.1.0.0/16 , fd00::/8 ', '10.1.200.1'));
  assert.ok(allows('10.1.0.0/16,fd00::/8', 'fd00::9'));
  assert.ok(allows('10.1.0.0/16', '::ffff:10.1.0.9'));
  assert.ok(allows('127.0.0.1', '::ffff:127.0.0.1'));
  assert.ok(allows('100.64.0.0/10', '100.100.1.1'));
  assert.ok(!allows('10.1.0.0/16', '::1'));
});

test('only an address or a network within their range allows link-local and metadata addresses', () => {
  for (const address of GUARDED) {
    assert.ok(!allows('0.0.0.0/0,::/0,loopback,private,100.64.0.0/10,fc00::/7', address), address);
  }
  assert.ok(allows('169.254.169.254', '169.254.169.254'));
  assert.ok(allows('169.254.0.0/16', '169.254.1.1'));
  assert.ok(!allows('169.0.0.0/8', '169.254.1.1'));
  assert.ok(allows('fd00:ec2::254', 'fd00:ec2::254'));
  assert.ok(allows('fe80::/64', 'fe80::1'));
});

test('a refusal names the address, its range, the setting and what would allow it', () => {
  const verdict = parseAllowNetworks('none').verdict('::ffff:10.0.0.5');
  assert.deepEqual(verdict, {
    allowed: false,
    why:
      '::ffff:10.0.0.5 (that is 10.0.0.5) is a private address (10.0.0.0/8), which FLOWHOOK_ALLOW_NETWORKS does not ' +
      'allow. To allow it, add `private` or the address to this setting',
  });
});

test('refuses text that is not an address', () => {
  for (const text of ['', 'localhost', '1.2.3', '1.2.3.4.5', '[::1]'])
    assert.ok(!allows('private', text), text);
});

test('refuses invalid settings with a sentence that names the entry', () => {
  for (const [setting, expected] of [
    ['', /contains ""/],
    ['loopback,', /contains ""/],
    ['intranet', /contains "intranet".*comma-separated list/],
    ['10.0.0.0/33', /contains "10.0.0.0\/33"/],
    ['10.0.0.0/8/8', /contains/],
    ['10.0.0/8', /contains/],
    ['none,private', /either `none` or a list/],
    ['::ffff:10.0.0.1', /represents the IPv4 address 10.0.0.1/],
  ] as const) {
    assert.throws(() => parseAllowNetworks(setting), expected, setting);
  }
});

test('the description lists the allowed addresses', () => {
  assert.equal(parseAllowNetworks('none').description, 'public addresses');
  assert.equal(
    parseAllowNetworks('private, 127.0.0.1').description,
    'public addresses, private, 127.0.0.1/32',
  );
});

test('the verdict on an IPv4 address is the same in every IPv6 form', () => {
  fc.assert(
    fc.property(
      fc.ipV4(),
      fc.constantFrom('none', 'loopback', 'private', '10.0.0.0/8'),
      (address, setting) => {
        const policy = parseAllowNetworks(setting);
        const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
        const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
        for (const carrier of [`::ffff:${address}`, `::ffff:${hex}`, `64:ff9b::${hex}`, `2002:${hex}::1`]) {
          assert.equal(embeddedIpv4(carrier), address);
          assert.equal(policy.verdict(carrier).allowed, policy.verdict(address).allowed);
        }
      },
    ),
  );
});
