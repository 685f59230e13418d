/** The TLS certificate of this service, read from two files and read again when they change. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Server as PlainServer } from 'node:http';
import { Server } from 'node:https';
import { createSecureContext } from 'node:tls';
import type { Logger } from '../../observe/log.ts';

/** How often the files are read. */
const LOOK_MS = 10_000;

/** The certificate with its chain, and its private key: paths of PEM files, or their contents. */
interface Pair {
  cert: string;
  key: string;
}

/** A certificate that follows its files. If new files cannot be used, the previous certificate stays in use. */
export class Certificate {
  readonly #files: Pair;
  readonly #log: Logger;
  #pair: Pair;
  /** Why the files could not be used at the last look. Logged once, not at every look. */
  #refusal: string | undefined;
  #server: Server | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @throws Error if a file cannot be read, or the key does not match the certificate */
  constructor(files: Pair, log: Logger) {
    this.#files = files;
    this.#log = log;
    this.#pair = read(files);
    check(this.#pair, files);
  }

  /** The contents of the files, for creating a server. */
  get pair(): Pair {
    return this.#pair;
  }

  /** Keeps the certificate of an HTTPS server up to date. HTTP servers are ignored. */
  follow(server: PlainServer): void {
    if (!(server instanceof Server)) return;
    this.#server = server;
    this.#timer = setInterval(() => this.look(), LOOK_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#server = undefined;
  }

  /** Reads the files again. Open connections keep their certificate. */
  look(): void {
    try {
      const found = read(this.#files);
      const isSame = found.cert === this.#pair.cert && found.key === this.#pair.key;
      if (!isSame) {
        check(found, this.#files);
        this.#server?.setSecureContext(found);
        this.#pair = found;
        this.#log.info({ validTo: new X509Certificate(found.cert).validToDate }, 'certificate.changed');
      }
      this.#refusal = undefined;
    } catch (err) {
      // One of the two files may still be incomplete, so the next check tries again.
      const { message } = err as Error;
      if (message !== this.#refusal) {
        this.#log.error({ err }, 'certificate.not_changed: the previous certificate stays in use');
      }
      this.#refusal = message;
    }
  }
}

function read(files: Pair): Pair {
  const textOf = (path: string): string => {
    try {
      return readFileSync(path, 'utf8');
    } catch (cause) {
      throw new Error(`${path} cannot be read: ${(cause as Error).message}`, { cause });
    }
  };
  return { cert: textOf(files.cert), key: textOf(files.key) };
}

function check(pair: Pair, files: Pair): void {
  try {
    createSecureContext(pair);
    // `createSecureContext` accepts empty files, but every handshake would fail.
    if (!new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key))) {
      throw new Error('the key belongs to a different certificate');
    }
  } catch (cause) {
    throw new Error(
      `The certificate in ${files.cert} and the key in ${files.key} cannot be used together: ${(cause as Error).message}. Both must be PEM, and the key must belong to the certificate and have no password`,
      { cause },
    );
  }
}
