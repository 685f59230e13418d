/** Deliveries: how fast a backlog is sent, how soon an event arrives, and whether bad endpoints delay others. */
import type { Benchmark, Contestant } from './benchmark.ts';
import { bareLoop } from './deliver-bare.ts';
import { deadEndpoints, drainFigures, FIGURES, ourDeliveries } from './deliver-ours.ts';
import { peerByUrl } from './deliver-peers.ts';
import { DURABILITY, type DurablePostgres, startDurablePostgres } from './postgres.ts';
import { startSink } from './sink.ts';

const DELIVERIES = 10_000;
const FULL_DELIVERIES = 50_000;

const benchmark: Benchmark = {
  about:
    `Each delivery is signed, sent and stored durably (SQLite: synchronous=FULL; PostgreSQL: ${DURABILITY}, ${DELIVERIES.toLocaleString('en')} ` +
    `deliveries). "to 1" and "to 100": deliveries per second of a backlog of ${DELIVERIES.toLocaleString('en')} (${FULL_DELIVERIES.toLocaleString('en')} ` +
    'with --full), to 1 endpoint with an event for each delivery, or to 100 endpoints with events that each ' +
    'go to all of them; "processor": processor time per delivery. The limit posts as many bodies to the same ' +
    'endpoints with undici, but signs and stores nothing. "p50 at 200/s" and similar: the time from the ' +
    'timestamp of an event, when its transaction starts, to its receipt (other products: from the call that ' +
    'sends the event), for events to 50 endpoints in turn. "5 hang" and similar: 5 of the 50 endpoints ' +
    'misbehave, and only the others are measured; "arrived": the share of events that arrived. "1,000 dead": ' +
    'another 1,000 endpoints refuse connections, with 100,000 deliveries waiting for them. "posted": events ' +
    'sent through the API over 64 connections, until all have arrived. Other products may still retry what hung ' +
    'in an earlier round.',
  units: FIGURES,
  limit: 'bare undici',
  async setUp({ full, peers }) {
    const sink = await startSink(process.env.FLOWHOOK_BENCH_SINK);
    const deliveries = full ? FULL_DELIVERIES : DELIVERIES;
    const posted = peers.length > 0;
    const ours = await ourDeliveries({
      name: 'flowhook',
      sink: sink.under('/flowhook'),
      deliveries,
      full,
      posted,
    });
    const others = full ? [await deadEndpoints(sink.under('/dead'))] : [];
    let postgres: DurablePostgres | undefined;
    if (full) {
      postgres = await startDurablePostgres();
      const database = await postgres.makeDatabase('deliver');
      const name = 'flowhook, PostgreSQL';
      const part = sink.under('/postgres');
      others.push(
        await ourDeliveries({ name, sink: part, deliveries: DELIVERIES, full: false, posted, database }),
      );
    }
    const theirs: Contestant[] = [];
    for (const peer of peers) theirs.push(await peerByUrl(peer, sink));
    const bare: Contestant = {
      name: 'bare undici',
      async round() {
        const to1 = await bareLoop({ sink: sink.under('/bare'), endpoints: 1, deliveries, body: ours.body });
        const to100 = await bareLoop({
          sink: sink.under('/bare'),
          endpoints: 100,
          deliveries,
          body: ours.body,
        });
        return drainFigures(to1, to100);
      },
    };
    return {
      contestants: [bare, ours, ...others, ...theirs],
      skipped: full && !posted ? ['other products, which --peer adds.'] : [],
      async tearDown() {
        for (const started of [ours, ...others]) await started.stop();
        await postgres?.stop();
        sink.stop();
      },
    };
  },
};
export default benchmark;
