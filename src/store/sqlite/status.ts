/** The state of the database file. */
import { statSync } from 'node:fs';
import { NEWEST_SCHEMA } from '../migrations.ts';
import type { View } from '../sql.ts';
import type { DatabaseStatus } from '../status-operations.ts';

export async function database(view: View, path: string): Promise<DatabaseStatus> {
  const found = await view.db.get<{ version: string }>('select sqlite_version() as version');
  return {
    kind: 'sqlite',
    version: found?.version ?? '',
    bytes: sizeOf(path),
    walBytes: sizeOf(`${path}-wal`),
    schema: await schemaVersion(view),
  };
}

export async function schema(view: View): Promise<{ found: number; newest: number }> {
  return { found: await schemaVersion(view), newest: NEWEST_SCHEMA };
}

async function schemaVersion(view: View): Promise<number> {
  return (await view.db.get<{ user_version: number }>('pragma user_version'))?.user_version ?? 0;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
