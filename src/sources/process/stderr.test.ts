/** Standard error of sources: log lines with masked secrets, and progress. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { directoryOf, finish, start } from '../../../test/support/jobs/sources.ts';

test('standard error becomes log lines with levels and masked secrets, and progress', async (t) => {
  const said: string[] = [];
  const progress: object[] = [];
  const directory = await directoryOf(t, {
    'log.txt': [
      'plain',
      'WARNING:root:token is hunter22',
      '{"level":50,"msg":"from pino","key":"-----A\\n-----B"}',
      '{"flowhook":"progress","pages":12,"message":"reading with hunter22"}',
      '{"flowhook":"log","level":"debug","text":"one\\ntwo -----A"}',
      '\u001b[31mINFO\u001b[0m colored\u0007',
      'overwritten\rby this',
      '-----A',
      'end',
    ].join('\n'),
  });
  const run = await start(t, {
    command: ['sh', '-c', `cat ${join(directory, 'log.txt')} >&2`],
    secrets: new Map([
      ['TOKEN', 'hunter22'],
      ['KEY', '-----A\n-----B'],
    ]),
    onLog: ({ level, text }) => said.push(`${level} ${text}`),
    onProgress: (news) => progress.push(news),
  });
  assert.equal((await finish(run)).end.ok, true);
  assert.deepEqual(said, [
    'info plain',
    'warn WARNING:root:token is ***',
    'error {"level":50,"msg":"from pino","key":"***"}',
    'debug one',
    'debug two ***',
    'info INFO colored',
    'info overwritten',
    'info by this',
    'info ***',
    'info end',
  ]);
  assert.deepEqual(progress, [{ pages: 12, message: 'reading with ***' }]);
});

test('a secret is masked where a long line is split', async (t) => {
  const secret = 'S'.repeat(500);
  let text = '';
  const run = await start(t, {
    command: [
      'node',
      '-e',
      `process.stderr.write('x'.repeat(8000) + '${secret}'.slice(0, 400)); setTimeout(() => process.stderr.write('${secret}'.slice(400) + 'y'.repeat(9000)), 50)`,
    ],
    secrets: new Map([['LONG', secret]]),
    onLog: (line) => (text += line.text),
  });
  await finish(run);
  assert.doesNotMatch(text, /S/);
  assert.match(text, /^x{8000}\*\*\*y{9000}$/);
});
