/** Real responses: in every format and character set, compressed, mislabeled, broken and hostile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { site, take } from '../../../test/support/jobs/source-site.ts';

/** Serves one body with these headers, and reads it. */
async function read(
  t: Parameters<typeof site>[0],
  body: string | Buffer,
  headers: Record<string, string>,
  settings: { source?: object; fields?: object; path?: string } = {},
) {
  const { source = {}, fields, path = '/x' } = settings;
  const { url } = await site(t, (request, response) => {
    if (request.url === '/robots.txt') return response.writeHead(404).end();
    response.writeHead(200, headers).end(body);
  });
  return take({ source: { url: `${url}${path}`, ...source }, ...(fields === undefined ? {} : { fields }) });
}

const JSON_TYPE = { 'content-type': 'application/json' };
const ROWS = [
  { id: '1', name: 'Zoë' },
  { id: '2', name: 'Łukasz' },
];

test('each format is detected by its content type', async (t) => {
  const fields = { id: 'i', name: 'n' };
  const cases: [body: string, type: string, fields?: object][] = [
    [JSON.stringify(ROWS), 'application/json; charset=utf-8'],
    [JSON.stringify(ROWS), 'application/vnd.api+json'],
    [ROWS.map((row) => JSON.stringify(row)).join('\n'), 'application/x-ndjson'],
    ['id,name\r\n1,Zoë\r\n2,Łukasz\r\n', 'text/csv'],
    ['id;name\n1;"Zoë"\n2;Łukasz', 'text/csv; header=present'],
    ['id\tname\n1\tZoë\n2\tŁukasz', 'text/tab-separated-values'],
  ];
  for (const [body, type] of cases) {
    const { records } = await read(t, body, { 'content-type': type });
    assert.deepEqual(records, ROWS, type);
  }
  const xml = '<?xml version="1.0"?><l><p><i>1</i><n>Zoë</n></p><p><i>2</i><n><![CDATA[Łukasz]]></n></p></l>';
  for (const type of ['application/xml', 'application/rss+xml']) {
    const { records } = await read(
      t,
      xml,
      { 'content-type': type },
      { source: { records: 'l > p' }, fields },
    );
    assert.deepEqual(records, ROWS, type);
  }
  const html = '<!doctype html><meta charset=utf-8><ul><li id=1>Zoë<li id=2>Łukasz</ul>';
  const { records } = await read(
    t,
    html,
    { 'content-type': 'text/html' },
    { source: { records: 'li' }, fields: { id: '@id', name: '.' } },
  );
  assert.deepEqual(records, ROWS);
});

test('a wrong or missing content type does not matter if the text or the file name shows the format', async (t) => {
  const lines = ROWS.map((row) => JSON.stringify(row)).join('\n');
  const cases: [body: string, headers: Record<string, string>, path?: string][] = [
    [JSON.stringify(ROWS), { 'content-type': 'text/html' }],
    [JSON.stringify(ROWS), {}],
    [`\ufeff  ${JSON.stringify(ROWS)}`, { 'content-type': 'text/plain' }],
    [lines, { 'content-type': 'application/octet-stream' }],
    [lines, { 'content-type': 'text/plain' }, '/x.jsonl?y=1'],
    ['id,name\n1,Zoë\n2,Łukasz\n', { 'content-type': 'application/octet-stream' }, '/x.csv'],
    ['id,name\n1,Zoë\n2,Łukasz\n', { 'content-type': 'text/plain' }],
  ];
  for (const [body, headers, path] of cases) {
    const { records } = await read(t, body, headers, path === undefined ? {} : { path });
    assert.deepEqual(records, ROWS, JSON.stringify([body.slice(0, 20), headers, path]));
  }
  await assert.rejects(
    read(t, 'hello', {}),
    /The response of .* has an unknown format \(content-type: none\)\. Set `source\.parse`/,
  );
});

test('an HTML page instead of data is reported as such', async (t) => {
  await assert.rejects(
    read(
      t,
      '<!DOCTYPE html><title>Please log in</title>',
      { 'content-type': 'text/html' },
      { source: { parse: 'json' } },
    ),
    /returned an HTML page instead of json .*Please log in/,
  );
});

test('every character set is read, wherever it is declared', async (t) => {
  const latin = Buffer.from('id,name\n1,Zoë\n', 'latin1');
  const cases: [body: Buffer, type: string, source?: object][] = [
    [latin, 'text/csv; charset=iso-8859-1'],
    [latin, 'text/csv'],
    [latin, 'text/csv; charset=utf-8'],
    [latin, 'text/csv; charset=nonsense'],
    [latin, 'text/csv; charset=utf-16le', { charset: 'windows-1252' }],
    [Buffer.from('\ufeffid,name\n1,Zoë\n', 'utf16le'), 'text/csv'],
    [Buffer.from('id,name\n1,Zoë\n', 'utf16le'), 'text/csv'],
    [Buffer.from('\ufeffid,name\n1,Zoë\n', 'utf16le').swap16(), 'text/csv; charset=utf-8'],
    [Buffer.from('\ufeffid,name\n1,Zoë\n'), 'text/csv; charset=windows-1252'],
  ];
  for (const [body, type, source = {}] of cases) {
    const { records, said } = await read(t, body, { 'content-type': type }, { source });
    assert.deepEqual(records, [{ id: '1', name: 'Zoë' }], type);
    const lies = type.endsWith('utf-8') && body === latin;
    assert.match(said.join(), lies ? /claims to be UTF-8 but is not, so it is read as windows-1252/ : /^$/);
  }
  const fields = { id: '@id', name: '.' };
  for (const head of [
    '<meta charset="iso-8859-2">',
    '<meta http-equiv=content-type content="text/html; charset=iso-8859-2">',
  ]) {
    const page = Buffer.concat([
      Buffer.from(`<!doctype html>${head}<p id=1>`),
      Buffer.from([0xa3]),
      Buffer.from('uk'),
    ]);
    const { records } = await read(
      t,
      page,
      { 'content-type': 'text/html' },
      { source: { records: 'p' }, fields },
    );
    assert.deepEqual(records, [{ id: '1', name: 'Łuk' }]);
  }
  const xml = Buffer.from('<?xml version="1.0" encoding="ISO-8859-1"?><p id="1">Zoë</p>', 'latin1');
  const { records } = await read(
    t,
    xml,
    { 'content-type': 'text/xml' },
    { source: { records: 'p' }, fields },
  );
  assert.deepEqual(records, [{ id: '1', name: 'Zoë' }]);
});

test('compressed bodies are read, and so are compressed files', async (t) => {
  const text = JSON.stringify(ROWS);
  const cases: [body: Buffer, encoding: string][] = [
    [gzipSync(text), 'gzip'],
    [brotliCompressSync(text), 'br'],
    [zstdCompressSync(text), 'zstd'],
    [deflateSync(text), 'deflate'],
    [deflateRawSync(text), 'deflate'],
    [gzipSync(brotliCompressSync(text)), 'br, gzip'],
    [gzipSync(text), ''],
    [zstdCompressSync(text), ''],
    [Buffer.from(text), 'identity'],
  ];
  for (const [body, encoding] of cases) {
    const headers = encoding === '' ? JSON_TYPE : { ...JSON_TYPE, 'content-encoding': encoding };
    assert.deepEqual((await read(t, body, headers)).records, ROWS, encoding);
  }
  const { records } = await read(
    t,
    gzipSync('id,name\n1,Zoë\n2,Łukasz\n'),
    { 'content-type': 'application/gzip' },
    { path: '/x.csv.gz' },
  );
  assert.deepEqual(records, ROWS);
  const gzip = { ...JSON_TYPE, 'content-encoding': 'gzip' };
  await assert.rejects(read(t, gzipSync(text).subarray(0, 30), gzip), /cannot be decompressed \(gzip\)/);
  await assert.rejects(read(t, text, gzip), /cannot be decompressed \(gzip\)/);
  await assert.rejects(
    read(t, text, { ...JSON_TYPE, 'content-encoding': 'compress' }),
    /compressed with compress, which is not supported/,
  );
});

test('a response that is compressed many times is refused', async (t) => {
  for (const encoding of ['gzip', 'br', 'zstd']) {
    const { url } = await site(t, (_request, response) => {
      response.writeHead(200, { 'content-encoding': Array(400).fill(encoding).join(',') }).end('xxxxxxxx');
    });
    await assert.rejects(take({ source: { url } }), /has 400 content encodings, but at most 4 are supported/);
  }
});

test('the error about a broken response says what is wrong', async (t) => {
  const cases: [body: string, settings: Parameters<typeof read>[3], sentence: RegExp][] = [
    ['[{"id":1},{"id":', {}, /ends after record 1/],
    ['[{"id":1},{id:2}]', { fields: { id: '$.id' } }, /not valid JSON .*\{id:2\}/],
    ['{"data":[]} x', { source: { records: '$.data' } }, /not valid JSON/],
    ['', {}, /is empty, but should be JSON/],
    [
      '{"items":[1],"next":null}',
      { source: { records: '$.data' } },
      /matches nothing\. The response has: items \(a list\), next/,
    ],
    ['{"data":7}', { source: { records: '$.data' } }, /matches 7, but it must match an array or an object/],
    [`["${'x'.repeat(17 << 20)}"]`, {}, /Element 1 of the array is longer than/],
    ['id,name\n1,2,3\n', { source: { parse: 'csv' } }, /Row 2 has 3 fields, but the first row has 2/],
    ['id,name\n1,"x', { source: { parse: 'csv' } }, /Row 2: a quoted field is not closed/],
    ['', { source: { parse: 'csv' } }, /CSV must start with a row of column names/],
  ];
  for (const [body, settings, sentence] of cases) {
    await assert.rejects(read(t, body, JSON_TYPE, settings), sentence, body.slice(0, 40));
  }
});

test('CSV in the dialects of spreadsheets is read, and rows that end in a carriage return are refused', async (t) => {
  const texts: Record<string, string> = {
    '/twice': 'email,email,name,email\na@x,b@x,Z,c@x\n',
    '/sep': '\ufeffsep=;\r\na,x;b\r\n1;2\r\n',
    '/old': 'id,name\r1,a\r2,b\r',
    '/quoted': 'id,"full\r\nname"\r\n1,a\r\n',
    '/prototype': '__proto__,id\n1,2\n',
  };
  const { url } = await site(t, (request, response) =>
    response.setHeader('content-type', 'text/csv').end(texts[request.url ?? '']),
  );
  const of = async (path: string, source = {}) =>
    (await take({ source: { url: url + path, ...source } })).records;
  assert.deepEqual(await of('/twice'), [{ email: 'a@x', email_2: 'b@x', name: 'Z', email_3: 'c@x' }]);
  assert.deepEqual(await of('/sep'), [{ 'a,x': '1', b: '2' }]);
  assert.deepEqual(await of('/sep', { delimiter: ';' }), [{ 'a,x': '1', b: '2' }]);
  assert.deepEqual(await of('/quoted'), [{ id: '1', 'full\r\nname': 'a' }]);
  assert.equal(JSON.stringify(await of('/prototype')), '[{"__proto__":"1","id":"2"}]');
  await assert.rejects(of('/old'), /Rows that end with only a carriage return are not supported/);
});

test('JSON that is read whole may start with a byte order mark, and its strings do not declare a character set', async (t) => {
  const { url } = await site(t, {
    '/list': (_request, response) =>
      response
        .setHeader('content-type', 'application/json')
        .end('\ufeff{"a":[{"id":1,"url":"/one"}],"b":[{"id":2,"url":"/one"}]}'),
    '/one': (_request, response) =>
      response
        .setHeader('content-type', 'application/json')
        .end('\ufeff{"name":"Zoë","html":"<meta charset=latin1>"}'),
  });
  const follow = { url: '$.url', parse: 'json', fields: { name: '$.name' } };
  const { records } = await take({
    source: { url: `${url}/list`, records: '$[*][*]', follow },
    fields: { id: '$.id' },
  });
  assert.deepEqual(records, [
    { id: 1, name: 'Zoë' },
    { id: 2, name: 'Zoë' },
  ]);
});

test('an empty list has no records, and a single object is one record', async (t) => {
  assert.deepEqual((await read(t, '{"data":[]}', JSON_TYPE, { source: { records: '$.data' } })).records, []);
  assert.deepEqual(
    (await read(t, '{"data":null}', JSON_TYPE, { source: { records: '$.data' } })).records,
    [],
  );
  assert.deepEqual((await read(t, ' {"id":1} ', JSON_TYPE)).records, [{ id: 1 }]);
  assert.deepEqual((await read(t, '{"a":{"id":1}}', JSON_TYPE, { source: { records: '$.a' } })).records, [
    { id: 1 },
  ]);
});

test('any JSONPath of RFC 9535 can find records', async (t) => {
  const body = JSON.stringify({
    groups: [{ people: [{ id: 1, on: true }, { id: 2 }] }, { people: [{ id: 3, on: true }] }],
  });
  for (const [path, ids] of [
    ['$.groups[*].people[?@.on == true]', [1, 3]],
    ['$..people', [1, 2, 3]],
    ['$.groups[0].people', [1, 2]],
    ['$.groups[1].people[*]', [3]],
  ] as const) {
    const { records } = await read(t, body, JSON_TYPE, { source: { records: path } });
    assert.deepEqual(
      records.map(({ id }) => id),
      ids,
      path,
    );
  }
});

test('numbers too large for a double are kept as they are', async (t) => {
  const { url } = await site(t, (_request, response) =>
    response.setHeader('content-type', 'application/json').end('[{"id":12345678901234567890,"n":1.10}]'),
  );
  const { records } = await take({ source: { url }, fields: { id: '$.id', text: '{{$.id}}' } });
  assert.equal(records[0].text, '12345678901234567890');
});

test('a line of 10 MB is read if only some of its fields are used', async (t) => {
  const line = JSON.stringify({ note: 'x'.repeat(10 << 20), id: 1 });
  for (const [body, type] of [
    [`${line}\n`, 'application/x-ndjson'],
    [`[${line}]`, 'application/json'],
  ] as const) {
    const { records } = await read(t, body, { 'content-type': type }, { fields: { id: '$.id' } });
    assert.deepEqual(records, [{ id: 1 }]);
  }
});

test('deep nesting, entity bombs and compression bombs do no harm', async (t) => {
  const deep = `${'<div>'.repeat(12_000)}x`;
  const { records } = await read(
    t,
    deep,
    { 'content-type': 'text/html' },
    { source: { records: 'body' }, fields: { id: '.' } },
  );
  assert.deepEqual(records, [{ id: 'x' }]);

  const bomb = `<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">${Array.from({ length: 9 }, (_, n) => `<!ENTITY b${n} "${`&b${n - 1};`.repeat(10)}">`).join('')}<!ENTITY x SYSTEM "file:///etc/passwd">]><l><p>&b8;&x;</p></l>`;
  const xml = await read(
    t,
    bomb,
    { 'content-type': 'application/xml' },
    { source: { records: 'p' }, fields: { id: '.' } },
  );
  assert.deepEqual(xml.records, [{ id: '&b8;&x;' }]);

  const json = `[${'['.repeat(100_000)}${']'.repeat(100_000)}]`;
  await assert.rejects(
    read(t, json, JSON_TYPE, { source: { records: '$..a' } }),
    /cannot be read: \$\.\.a cannot be evaluated/,
  );

  const spaces = zstdCompressSync(Buffer.alloc(130 << 20, 0x20));
  await assert.rejects(
    read(t, spaces, { 'content-type': 'text/html', 'content-encoding': 'zstd' }, { fields: { id: '.' } }),
    /larger than 128 MiB, the limit for this format/,
  );
});
