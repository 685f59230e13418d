/** Where a URL is cut when it does not fit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { urlParts } from './url-parts.ts';

test('the host and the end are kept apart from what may be cut', () => {
  assert.deepEqual(urlParts('https://hooks.example.com/integrations/flowhook/receive/acme'), {
    scheme: 'https://',
    host: 'hooks.example.com',
    middle: '/integrations/flowhook/receive',
    end: '/acme',
  });
  assert.deepEqual(urlParts('http://127.0.0.1:9000/crm'), {
    scheme: 'http://',
    host: '127.0.0.1:9000',
    middle: '',
    end: '/crm',
  });
});

test('an end without a slash nearby is its last letters', () => {
  const { middle, end } = urlParts('https://a.example/inspect/insp_06fgpm2xnc1tqm8j1yx4hq6p4w');
  assert.equal(end, '1yx4hq6p4w'.slice(-8));
  assert.ok(middle.startsWith('/inspect/insp_'));
});

test('together the parts are the whole, whatever the text is', () => {
  for (const url of [
    'https://a.example',
    'https://a.example/',
    'nonsense',
    '',
    'https://a/?q=/x/y/z#1',
    '//a/b',
  ])
    assert.equal(Object.values(urlParts(url)).join(''), url);
});
