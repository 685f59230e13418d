/** Values that belong to the whole instance, by name. */
import type { Tx, View } from '../sql.ts';

/** Stores a value under a name unless the name is taken; returns the stored value. */
export async function claim(tx: Tx, { name, value }: { name: string; value: string }): Promise<string> {
  await tx.db.run`
    insert into instance (name, value) values (${name}, ${value}) on conflict (name) do nothing`;
  return (await get(tx, { name })) ?? value;
}

export async function get(view: View, { name }: { name: string }): Promise<string | undefined> {
  return (await view.db.get<{ value: string }>`select value from instance where name = ${name}`)?.value;
}

/**
 * Acquires or renews this node's lease on a chore for `forMs`; returns whether the node holds it. At most one node
 * does. Always true on SQLite, where there is only one node.
 *
 * At most one node holds a lease: the row is locked, and PostgreSQL evaluates the condition again for whoever had to
 * wait. A lease that ends further ahead than any could was granted before the clock was set back, and may be taken.
 */
export async function lease(
  tx: Tx,
  { name, nodeId, forMs }: { name: string; nodeId: string; forMs: number },
): Promise<boolean> {
  const taken = await tx.db.run`
    insert into chore (name, node_id, lease_until) values (${name}, ${nodeId}, ${tx.now + forMs})
    on conflict (name) do update set node_id = excluded.node_id, lease_until = excluded.lease_until
    where chore.node_id = excluded.node_id or chore.lease_until <= ${tx.now}
      or chore.lease_until > ${tx.now + 2 * forMs}`;
  return taken > 0;
}
