/** Values that belong to the whole instance, by name. */
import type { Tx } from './transaction.ts';

export function claim(tx: Tx, { name, value }: { name: string; value: string }): string {
  tx.db.run('insert into instance (name, value) values (?, ?) on conflict (name) do nothing', name, value);
  return tx.db.get<{ value: string }>('select value from instance where name = ?', name)?.value ?? value;
}
