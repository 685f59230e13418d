/** The URL that names the database: which kind it is, and what is wrong with it. It may hold a password. */

const FORMS = 'of the form sqlite:/absolute/path/flowhook.db or postgres://user:password@host:5432/database';
/** What `prefer` and `allow` promise is no protection: whoever is in between just says that there is no TLS. */
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];

/** Whether any number of processes may work on the database at once. */
export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url);
}

/** What the URL must be that it is not, to stand behind "must be"; nothing when it can be tried. Never repeats it. */
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
 * The URL as the client takes it. With `sslmode=require` it encrypts without looking at the certificate, as PostgreSQL's
 * own programs do: who wants to know whom they speak to says `verify-full`.
 */
export function clientUrl(url: string): string {
  const parsed = new URL(url);
  if (parsed.searchParams.has('sslmode')) parsed.searchParams.set('uselibpqcompat', 'true');
  return parsed.href;
}
