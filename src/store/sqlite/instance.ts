/** Named values of the whole instance. */
import type { Tx, View } from './transaction.ts';

export function claim(tx: Tx, { name, value }: { name: string; value: string }): string {
  tx.db.run('insert into instance (name, value) values (?, ?) on conflict (name) do nothing', name, value);
  return tx.db.get<{ value: string }>('select value from instance where name = ?', name)?.value ?? value;
}

export function get(view: View, { name }: { name: string }): string | undefined {
  return view.db.get<{ value: string }>('select value from instance where name = ?', name)?.value;
}
