/** Deliveries: how fast a backlog goes out, how soon an event arrives, and what endpoints that misbehave cost the others. */
import type { Benchmark, Contestant } from './benchmark.ts';
import { bareLoop } from './deliver-bare.ts';
import { deadEndpoints, drainFigures, FIGURES, ourDeliveries } from './deliver-ours.ts';
import { startSink } from './sink.ts';

const DELIVERIES = 10_000;
const FULL_DELIVERIES = 50_000;

const benchmark: Benchmark = {
  about:
    'Each delivery is signed, sent and written down durably (SQLite: synchronous=FULL). "to 1", "to 100": a backlog of ' +
    `${DELIVERIES.toLocaleString('en')} (full: ${FULL_DELIVERIES.toLocaleString('en')}) to so many endpoints, an event each for the one, and events for all of the 100; the limit posts as much to the same with undici, signs ` +
    'nothing and keeps nothing. "at 200/s": from the commit of an event to its receipt, events for 50 endpoints in turn; ' +
    'where 5 of them misbehave, the others are measured. "1,000 dead": 1,000 endpoints more refuse connections, with ' +
    '100,000 deliveries waiting for them.',
  units: FIGURES,
  limit: 'bare undici',
  async setUp({ full }) {
    const sink = await startSink();
    const deliveries = full ? FULL_DELIVERIES : DELIVERIES;
    const ours = await ourDeliveries({ sink, deliveries, full });
    const others = full ? [await deadEndpoints(sink)] : [];
    const bare: Contestant = {
      name: 'bare undici',
      async round() {
        const to1 = await bareLoop({ sink, endpoints: 1, deliveries, body: ours.body });
        const to100 = await bareLoop({ sink, endpoints: 100, deliveries, body: ours.body });
        return drainFigures(to1, to100);
      },
    };
    return {
      contestants: [bare, ours, ...others],
      async tearDown() {
        for (const started of [ours, ...others]) await started.stop();
        sink.stop();
      },
    };
  },
};
export default benchmark;
