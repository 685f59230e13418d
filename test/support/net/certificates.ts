/** Certificates for tests of TLS, made with the `openssl` program if it is installed. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificate {
  key: string;
  cert: string;
}

export interface Authority {
  /** For `tls.setDefaultCACertificates`. */
  cert: string;
  /** @param input.days how long the certificate is valid; negative: it has expired */
  issue(input: { host: string; days: number }): Certificate;
}

const NEW_KEY = ['-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** Makes a certificate authority; undefined if `openssl` is not installed. */
export function certificateAuthority(): Authority | undefined {
  try {
    openssl(['version']);
  } catch {
    return undefined;
  }
  return within((directory) => {
    const root = selfSigned(directory, 'Test authority');
    return {
      cert: root.cert,
      issue: ({ host, days }) =>
        within((place) => {
          const [key, request, extensions] = [join(place, 'key'), join(place, 'csr'), join(place, 'ext')];
          const [ca, caKey] = [join(place, 'ca'), join(place, 'ca.key')];
          writeFileSync(ca, root.cert);
          writeFileSync(caKey, root.key);
          writeFileSync(extensions, `subjectAltName=DNS:${host}\n`);
          openssl(['req', ...NEW_KEY, '-keyout', key, '-subj', `/CN=${host}`, '-out', request]);
          const cert = openssl([
            ...['x509', '-req', '-in', request, '-CA', ca, '-CAkey', caKey, '-set_serial', '2'],
            ...['-days', String(days), '-extfile', extensions],
          ]);
          return { key: readFileSync(key, 'utf8'), cert };
        }),
    };
  });
}

export function selfSignedCertificate(host: string): Certificate {
  return within((directory) => selfSigned(directory, host));
}

function selfSigned(directory: string, name: string): Certificate {
  const key = join(directory, 'self.key');
  const cert = openssl(['req', '-x509', ...NEW_KEY, '-keyout', key, '-subj', `/CN=${name}`, '-days', '2']);
  return { key: readFileSync(key, 'utf8'), cert };
}

function openssl(args: string[]): string {
  return execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

function within<T>(work: (directory: string) => T): T {
  const directory = mkdtempSync(join(tmpdir(), 'flowhook-certificates-'));
  try {
    return work(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
