/** The database URL: which kind of database it names, and what is wrong with it. The URL may contain a password. */
const FORMS = 'of the form sqlite:/absolute/path/flowhook.db or postgres://user:password@host:5432/database';
/** Without `prefer` and `allow`, which protect from nothing: an attacker in between can simply refuse TLS. */
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];

/** Whether the URL names a PostgreSQL database; otherwise it names an SQLite file. */
export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url);
}

/** What is wrong with the URL, phrased to follow "must be"; undefined if it looks valid. Never contains the URL. */
export function databaseUrlMistake(url: string): string | undefined {
  if (!isPostgres(url)) return /^sqlite:\/./.test(url) ? undefined : FORMS;
  if (!URL.canParse(url)) {
    return `${FORMS}; percent-encode characters of the password other than letters and digits (%XX)`;
  }
  const { hostname, pathname, hash, searchParams } = new URL(url);
  const socket = searchParams.get('host');
  if (hostname === '' && socket === null) {
    return 'a postgres:// URL that names a host, or the directory of a socket as ?host=/var/run/postgresql';
  }
  if (pathname.length < 2) return 'a postgres:// URL that names a database after the host: …/flowhook';
  if (hash !== '') return 'a postgres:// URL without "#": write %23 in a password';
  const mode = searchParams.get('sslmode');
  if (mode !== null && !SSL_MODES.includes(mode)) {
    return `a postgres:// URL whose sslmode is one of ${SSL_MODES.join(', ')}`;
  }
  if (mode === 'verify-ca' && searchParams.get('sslrootcert') === null) {
    return 'a postgres:// URL with the certificates to trust in sslrootcert, which sslmode=verify-ca needs';
  }
  return undefined;
}

/**
 * The URL for the `pg` client. `sslmode=require` encrypts without checking the certificate, as PostgreSQL's own programs
 * do; `verify-full` checks it.
 */
export function clientUrl(url: string): string {
  const parsed = new URL(url);
  if (parsed.searchParams.has('sslmode')) parsed.searchParams.set('uselibpqcompat', 'true');
  return parsed.href;
}
