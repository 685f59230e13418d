/** The state of the database file. */
import { statSync } from 'node:fs';
import { schema } from '../operations/status.ts';
import type { View } from '../sql.ts';
import type { DatabaseStatus } from '../status-operations.ts';

export async function database(view: View, path: string): Promise<DatabaseStatus> {
  const found = await view.db.get<{ version: string }>('select sqlite_version() as version');
  return {
    kind: 'sqlite',
    version: found?.version ?? '',
    bytes: sizeOf(path),
    walBytes: sizeOf(`${path}-wal`),
    schema: (await schema(view)).found,
  };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
