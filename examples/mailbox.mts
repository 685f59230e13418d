#!/usr/bin/env node
/**
 * An SMTP server for trying things out: it accepts mail for any address, sends nothing on, prints each letter, and keeps
 * its HTML in a file that a browser can open.
 *
 *     node examples/mailbox.mts --port 9025
 *
 * `--refuse 450` refuses every recipient with this reply instead: Flowhook retries after 4xx, and gives up after 5xx. It
 * needs the packages of this clone.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { extract } from 'letterparser';
import { SMTPServer } from 'smtp-server';

const { values: options } = parseArgs({
  options: {
    port: { type: 'string', default: '9025' },
    /** Directory for the HTML of the letters. */
    out: { type: 'string', default: 'mailbox' },
    refuse: { type: 'string' },
  },
});

let letters = 0;

const server = new SMTPServer({
  // It has no certificate, and accepts everybody.
  disabledCommands: ['STARTTLS', 'AUTH'],
  onRcptTo({ address }, _session, done) {
    if (options.refuse === undefined) return done();
    process.stdout.write(`refused a letter for ${address} with ${options.refuse}\n`);
    done(
      Object.assign(new Error('This mailbox refuses every letter'), { responseCode: Number(options.refuse) }),
    );
  },
  onData(stream, _session, done) {
    text(stream).then((message) => {
      print(message);
      done();
    }, done);
  },
});
server.on('error', ({ message }) => {
  process.stderr.write(
    `The mailbox failed: ${message}. If the port is in use, choose another one with --port\n`,
  );
  process.exitCode = 1;
});
server.listen(Number(options.port), '127.0.0.1', () => {
  const { port } = server.server.address() as AddressInfo;
  process.stdout.write(`mailbox listening on smtp://127.0.0.1:${port}\n`);
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(0));

function print(message: string): void {
  const { from, to, subject, text: plain, html } = extract(message);
  letters += 1;
  const file = join(options.out, `letter-${letters}.html`);
  if (html !== undefined) {
    mkdirSync(options.out, { recursive: true });
    writeFileSync(file, html);
  }
  const lines = [
    `--- letter ${letters}${html === undefined ? '' : `, as HTML: ${file}`}`,
    `From: ${from?.raw ?? ''}`,
    `To: ${to?.map(({ raw }) => raw).join(', ') ?? ''}`,
    `Subject: ${subject ?? ''}`,
    '',
    (plain ?? '').trimEnd(),
    '',
  ];
  // A letter may hold anything; escape sequences must not reach the terminal.
  process.stdout.write(`${lines.join('\n').replaceAll(/[^\P{Cc}\n]/gu, '')}\n`);
}
