/** Checks whether LISTEN and NOTIFY work: behind a proxy that pools transactions they do not. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { clientUrl } from '../database-url.ts';
import { unusable } from './unusable.ts';

const CONNECT_MS = 5_000;
/** A notification that arrives at all arrives within milliseconds. */
const HEARD_MS = 5_000;

/** Rejects with a Problem when the database cannot be reached. */
export async function hearsNotifications(url: string): Promise<boolean> {
  const channel = `flowhook_${randomUUID().replaceAll('-', '')}`;
  const options = {
    connectionString: clientUrl(url),
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: CONNECT_MS,
  };
  const [listener, teller] = [new pg.Client(options), new pg.Client(options)];
  for (const client of [listener, teller]) client.on('error', () => undefined);
  const heard = Promise.withResolvers<boolean>();
  listener.on('notification', () => heard.resolve(true));
  let timer: NodeJS.Timeout | undefined;
  try {
    await Promise.all([listener.connect(), teller.connect()]);
    await listener.query(`listen ${channel}`);
    const { rows } = await listener.query('select pg_listening_channels() as name');
    // This statement went to another connection than `listen`.
    if (!rows.some(({ name }) => name === channel)) return false;
    await teller.query(`notify ${channel}`);
    timer = setTimeout(() => heard.resolve(false), HEARD_MS);
    return await heard.promise;
  } catch (error) {
    throw unusable(error);
  } finally {
    clearTimeout(timer);
    await Promise.allSettled([listener.end(), teller.end()]);
  }
}
