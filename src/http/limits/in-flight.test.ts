/** Requests whose body arrives slowly do not count as work. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import { silentLogger } from '../../observe/log.ts';
import { readBody } from '../input/body.ts';
import { InFlight } from './requests.ts';

test('a request counts as work only after its body has arrived', async (t) => {
  const inFlight = new InFlight({ waitMs: () => 0, log: silentLogger });
  const arrived = Promise.withResolvers<void>();
  const read = Promise.withResolvers<void>();
  const mayAnswer = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    inFlight.add(response, 'brief', 'a');
    response.once('close', () => inFlight.remove(response));
    const body = readBody(request);
    arrived.resolve();
    await body;
    read.resolve();
    await mayAnswer.promise;
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  t.after(() => socket.destroy());
  const working = () => {
    inFlight.recount();
    return inFlight.working;
  };

  socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{');
  await arrived.promise;
  assert.deepEqual([working(), inFlight.size], [0, 1]);
  socket.write('}');
  await read.promise;
  assert.equal(working(), 1);
  mayAnswer.resolve();
  await inFlight.empty();
  assert.deepEqual([working(), inFlight.size], [0, 0]);
});
