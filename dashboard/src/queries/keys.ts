/** What pages ask about keys. */
import { flowhook } from '../client.ts';
import { listQuery } from './list.ts';

export const keyList = () =>
  listQuery(['keys', 'list'], (cursor, signal) => flowhook.keys.list({ limit: 1_000, signal }).page(cursor));
