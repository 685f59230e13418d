/** The state of the database itself. */
import type { View } from '../sql.ts';
import type { DatabaseStatus } from '../status-operations.ts';

export async function database(view: View): Promise<DatabaseStatus> {
  const row = await view.db.get<Pick<DatabaseStatus, 'version' | 'bytes' | 'schema'>>(
    `select current_setting('server_version') as version, pg_database_size(current_database()) as bytes,
            (select max(number) from schema_version) as schema`,
  );
  return { version: '', bytes: 0, schema: 0, ...row, kind: 'postgres', walBytes: null };
}
