/**
 * Finds out which kind of database a database URL names, and what is wrong with the URL. The URL may contain a
 * password.
 */
const FORMS = 'of the form sqlite:/absolute/path/flowhook.db or postgres://user:password@host:5432/database';
/**
 * The modes `prefer` and `allow` are not accepted because they offer no protection: an attacker between client and
 * server can simply refuse TLS.
 */
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];

/** Whether the URL names a PostgreSQL database. Any other URL names an SQLite file. */
export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url);
}

/**
 * Says what the URL must be, phrased to follow "must be", or returns undefined if the URL looks valid. The text never
 * contains the URL.
 */
export function databaseUrlMistake(url: string): string | undefined {
  if (!isPostgres(url)) return /^sqlite:\/./.test(url) ? undefined : FORMS;
  if (!URL.canParse(url)) {
    return `${FORMS}. In the password, percent-encode all characters except letters and digits, such as # as %23`;
  }
  const { hostname, pathname, hash, searchParams } = new URL(url);
  const socket = searchParams.get('host');
  if (hostname === '' && socket === null) {
    return 'a postgres:// URL that names a host or, with ?host=/var/run/postgresql, the directory of a Unix socket';
  }
  if (pathname.length < 2)
    return 'a postgres:// URL with the name of a database after the host, such as postgres://host/flowhook';
  if (hash !== '') return 'a postgres:// URL without "#". If the password contains "#", write it as %23';
  const mode = searchParams.get('sslmode');
  if (mode !== null && !SSL_MODES.includes(mode)) {
    return `a postgres:// URL whose sslmode is one of ${SSL_MODES.join(', ')}`;
  }
  if (mode === 'verify-ca' && searchParams.get('sslrootcert') === null) {
    return 'a postgres:// URL with a file of trusted certificates in sslrootcert, because sslmode is verify-ca';
  }
  return undefined;
}

/**
 * Returns the URL for the `pg` client. As in PostgreSQL's own programs, `sslmode=require` encrypts without checking the
 * server's certificate, and `verify-full` checks the certificate.
 */
export function clientUrl(url: string): string {
  const parsed = new URL(url);
  if (parsed.searchParams.has('sslmode')) parsed.searchParams.set('uselibpqcompat', 'true');
  return parsed.href;
}
