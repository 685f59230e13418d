/** The database URL: which kind of database it names, and what is wrong with it. It may contain a password. */
const FORMS = 'of the form sqlite:/absolute/path/flowhook.db or postgres://user:password@host:5432/database';
/** Not `prefer` and `allow`: they protect from nothing, because an attacker in between can simply refuse TLS. */
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];

/** Whether it is PostgreSQL, which several nodes can share; else it is SQLite. */
export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url);
}

/** What is wrong, worded to follow "must be"; undefined if the URL looks valid. Never repeats the URL. */
export function databaseUrlMistake(url: string): string | undefined {
  if (!isPostgres(url)) return /^sqlite:\/./.test(url) ? undefined : FORMS;
  if (!URL.canParse(url)) {
    return `${FORMS}; characters of the password other than letters and digits are written as %XX`;
  }
  const { hostname, pathname, hash, searchParams } = new URL(url);
  const socket = searchParams.get('host');
  if (hostname === '' && socket === null) {
    return 'a postgres:// URL that names a host, or the directory of a socket as ?host=/var/run/postgresql';
  }
  if (pathname.length < 2) return 'a postgres:// URL that names a database behind the host: …/flowhook';
  if (hash !== '') return 'a postgres:// URL without "#": in a password it is written as %23';
  const mode = searchParams.get('sslmode');
  if (mode !== null && !SSL_MODES.includes(mode)) {
    return `a postgres:// URL whose sslmode is one of ${SSL_MODES.join(', ')}`;
  }
  if (mode === 'verify-ca' && searchParams.get('sslrootcert') === null) {
    return 'a postgres:// URL that names the certificates to trust as sslrootcert, as sslmode=verify-ca needs them';
  }
  return undefined;
}

/**
 * The URL for the `pg` client. With `sslmode=require` the connection is encrypted without checking the certificate, as
 * PostgreSQL's own programs do; `verify-full` checks it.
 */
export function clientUrl(url: string): string {
  const parsed = new URL(url);
  if (parsed.searchParams.has('sslmode')) parsed.searchParams.set('uselibpqcompat', 'true');
  return parsed.href;
}
