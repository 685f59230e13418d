/** The rows about queueing jobs. */
import assert from 'node:assert/strict';
import { parsed, type Sent } from '../support/net/wire.ts';
import { type Headers, IN_THE_WAY, is, NO_WORKFLOW, QUEUED, queue, type Rows, type World } from './world.ts';

export function queueRows({ ask, askInBytes, get, post, keys, letFinish }: World): Rows {
  const bodies: Record<string, Partial<Sent>> = {
    'a JSON body': { body: '{"a":1}', headers: [['content-type', 'application/json']] },
    'broken JSON': { body: '{"a":', headers: [['content-type', 'application/json']] },
    'text/plain': { body: 'hello', headers: [['content-type', 'text/plain']] },
    'a content type that is none': { body: 'hello', headers: [['content-type', 'nonsense']] },
    'an empty JSON body': { body: '', headers: [['content-type', 'application/json']] },
    'a chunked body': { body: '{"a":', headers: [['transfer-encoding', 'chunked']] },
    'a body of 1 MiB': { body: ' '.repeat(1_048_576), headers: [['content-type', 'application/json']] },
  };

  return {
    'POST queue (of a workflow whose run is held open): first / again immediately / 20 in parallel → 200 / 400 / exactly one 200':
      {
        'first and again': async () => {
          const first = is(await post(queue('first')), 200, QUEUED);
          const again = is(await post(queue('first')), 400, IN_THE_WAY);
          const id = first.headers['x-job-id'] as string;
          for (const { headers } of [first, again]) {
            assert.deepEqual([headers['x-job-id'], headers.location], [id, `/v1/jobs/${id}`]);
          }
          const job = parsed(is(await get(first.headers.location as string), 200)) as Record<string, unknown>;
          assert.deepEqual([job.id, job.workflowId, job.origin], [id, 'first', 'api']);
        },
        '20 in parallel': async () => {
          const all = await Promise.all(Array.from({ length: 20 }, () => post(queue('crowd'))));
          assert.deepEqual(all.map((got) => got.status).sort(), [200, ...Array(19).fill(400)]);
          assert.equal(new Set(all.map((got) => got.headers['x-job-id'])).size, 1);
        },
      },

    'POST queue with overlap: buffer: first / second / third → 200 / 200 / 400': {
      'three times': async () => {
        const first = is(await post(queue('buffered')), 200, QUEUED);
        const second = is(await post(queue('buffered')), 200, QUEUED);
        assert.notEqual(second.headers['x-job-id'], first.headers['x-job-id']);
        is(await post(queue('buffered')), 400, IN_THE_WAY);
      },
    },

    'POST queue twice with one idempotency-key / a key used on a 400, then again once free → 200 and the same x-job-id / 200':
      {
        'one key, twice and simultaneously': async () => {
          const key: Headers = [['idempotency-key', 'one']];
          const all = await Promise.all([1, 2, 3].map(() => post(queue('twins'), key)));
          for (const got of [...all, await post(queue('twins'), key)]) {
            is(got, 200, QUEUED);
            assert.equal(got.headers['x-job-id'], all[0]?.headers['x-job-id']);
          }
        },
        'a key that met a 400': async () => {
          const key: Headers = [['idempotency-key', 'two']];
          const first = is(await post(queue('freed')), 200);
          is(await post(queue('freed'), key), 400, IN_THE_WAY);
          await letFinish('freed', first);
          const later = is(await post(queue('freed'), key), 200, QUEUED);
          assert.notEqual(later.headers['x-job-id'], first.headers['x-job-id']);
        },
      },

    'POST queue once the job has finished → 200': {
      'after a whole run': async () => {
        await letFinish('again', is(await post(queue('again')), 200, QUEUED));
        is(await post(queue('again')), 200, QUEUED);
      },
    },

    'POST queue with a JSON body, broken JSON, text/plain, an empty JSON body, no content-length → ignored, 200':
      {
        ...Object.fromEntries(
          Object.entries(bodies).map(([name, sent]) => [
            name,
            async () =>
              letFinish(
                'unread',
                is(await ask({ method: 'POST', path: queue('unread'), ...sent }), 200, QUEUED),
              ),
          ]),
        ),
        'neither content-length nor transfer-encoding': async () => {
          const head = `POST ${queue('unread')} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: ${keys.good}`;
          await letFinish('unread', is(await askInBytes(`${head}\r\n\r\n`), 200, QUEUED));
        },
      },

    "POST queue: unknown or another team's workflow, even while another job is queued → 404": {
      unknown: async () => is(await post(queue('unknown')), 404, NO_WORKFLOW),
      "another team's, idle and busy": async () => {
        const idle = is(await post(queue('private')), 404, NO_WORKFLOW);
        is(await ask({ method: 'POST', path: queue('private') }, keys.others), 200, QUEUED);
        const busy = is(await post(queue('private')), 404, NO_WORKFLOW);
        assert.deepEqual([busy.text, busy.headers['x-job-id']], [idle.text, undefined]);
      },
    },
  };
}
