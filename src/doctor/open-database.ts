/** Opens the database of an installation for an examination, but only if that does not migrate it. */
import { statSync } from 'node:fs';
import { silentLogger } from '../observe/log.ts';
import { isPostgres } from '../store/database-url.ts';
import { isOwned, openStore, readSchema } from '../store/open.ts';
import type { ExaminedDatabase, ExaminedSettings } from './subject.ts';

const NONE: ExaminedDatabase = {
  store: undefined,
  schema: undefined,
  mistake: undefined,
  without: undefined,
};

/** Never throws: errors become `mistake`. The caller must close the store. */
export async function openDatabase(settings: ExaminedSettings): Promise<ExaminedDatabase> {
  const { databaseUrl } = settings;
  let schema: ExaminedDatabase['schema'];
  try {
    // Throws for a file that this user may not access, which would otherwise be taken for a missing one.
    if (!isPostgres(databaseUrl)) statSync(databaseUrl.slice('sqlite:'.length), { throwIfNoEntry: false });
    schema = await readSchema(databaseUrl);
    if (schema.found === 0) {
      return { ...NONE, schema, without: 'There is no database yet; the first start creates it' };
    }
    // Opening an older one would migrate it.
    if (schema.found !== schema.newest) {
      return { ...NONE, schema, without: 'The schema version is not the one this flowhook needs' };
    }
    const store = await openStore(databaseUrl, {
      publicUrl: () => '',
      log: silentLogger,
      listen: false,
      poolSize: 2,
    });
    return { ...NONE, schema, store };
  } catch (error) {
    return { ...NONE, schema, mistake: (error as Error).message };
  }
}

/** Whether a server runs on it; null if that cannot be known: on PostgreSQL it may run on any machine. */
export async function isServed({ databaseUrl }: ExaminedSettings): Promise<boolean | null> {
  // Another check reports a directory that cannot be read.
  return isPostgres(databaseUrl) ? null : isOwned(databaseUrl).catch(() => null);
}
