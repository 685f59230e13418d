/** Small authenticated responses: the cost of a request, without the cost of its content. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Benchmark, Contestant } from './benchmark.ts';
import { processorMsOf, startFlowhook } from './flowhook.ts';
import { forked } from './forked.ts';
import { hammer } from './load.ts';

const CONNECTIONS = 64;
const FOR_MS = 800;
const WORKFLOW = 'pushed';
/** Figure → path. The last one is called conditionally, and returns 304. */
const CALLS = {
  team: '/v1/me',
  list: '/v1/integrations/webhooks/list',
  'not modified': `/v1/workflows/${WORKFLOW}/data`,
} as const;
type Call = keyof typeof CALLS;
const NAMES = Object.keys(CALLS) as Call[];

const benchmark: Benchmark = {
  about:
    `Small responses to ${CONNECTIONS} clients over keep-alive connections, on SQLite: the team of the key ` +
    `(GET ${CALLS.team}), an empty list (GET ${CALLS.list}), and unchanged data (304). "CPU": the processor time ` +
    'of the server for each request, of all its threads. The limit is a Fastify route that sends the same bytes from memory ' +
    'and checks no key.',
  units: Object.fromEntries(
    NAMES.flatMap((name) => [
      [name, '/s'],
      [`${name}, CPU`, 'µs'],
    ]),
  ),
  limit: 'Fastify from memory',
  async setUp() {
    const flowhook = await startFlowhook({ [`default/${WORKFLOW}.yaml`]: 'source: { type: push }\n' });
    await flowhook.applied(WORKFLOW);
    const pushed = await fetch(`${flowhook.url}/v1/workflows/${WORKFLOW}/push`, {
      method: 'POST',
      headers: { ...flowhook.headers, 'content-type': 'application/json' },
      body: JSON.stringify([{ id: 1, name: 'Ada' }]),
    });
    if (pushed.status !== 200) throw new Error(await pushed.text());
    const files: string[] = [];
    for (const [at, path] of Object.values(CALLS).entries()) {
      const body = await fetch(flowhook.url + path, { headers: flowhook.headers });
      files.push(join(flowhook.directory, String(at)));
      await writeFile(files[at] as string, Buffer.from(await body.arrayBuffer()));
    }
    const memory = await forked(new URL('./read-memory.ts', import.meta.url), files);
    return {
      contestants: [
        contestant('Fastify from memory', memory, (name) => `/${NAMES.indexOf(name)}`, {}),
        contestant('flowhook', flowhook, (name) => CALLS[name], {
          ...flowhook.headers,
          'accept-encoding': 'identity',
        }),
      ],
      async tearDown() {
        await memory.stop();
        await flowhook.stop();
      },
    };
  },
};
export default benchmark;

function contestant(
  name: string,
  { url, pid }: { url: string; pid: number },
  pathOf: (call: Call) => string,
  own: Record<string, string>,
): Contestant {
  return {
    name,
    async *round() {
      for (const call of NAMES) {
        const path = pathOf(call);
        const first = await fetch(url + path, { headers: own });
        await first.arrayBuffer();
        const tag = first.headers.get('etag');
        const expected = call === 'not modified' ? 304 : 200;
        const headers = expected === 304 && tag !== null ? { ...own, 'if-none-match': tag } : own;
        let answered = 0;
        const before = await processorMsOf(pid);
        const { perSecond } = await hammer({
          url,
          connections: CONNECTIONS,
          forMs: FOR_MS,
          request: () => ({ method: 'GET', path, headers }),
          onStatus(status) {
            if (status !== expected) throw new Error(`${path} returned ${status}, not ${expected}`);
            answered += 1;
          },
        });
        const cpuMs = (await processorMsOf(pid)) - before;
        yield { [call]: perSecond, [`${call}, CPU`]: (cpuMs * 1_000) / answered };
      }
    },
  };
}
