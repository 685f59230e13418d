/** The signing thread: signs the messages of one batch after the other. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { type Signable, type SigningKeys, signatures } from './sign.ts';
import { createSignOnce } from './sign-once.ts';

/** Messages to sign, each with the place of its keys in `keys`: many messages have the same. */
export interface ToSign {
  keys: readonly SigningKeys[];
  messages: readonly (Signable & { keys: number })[];
}

/** The values of `webhook-signature`, in the order of the messages. */
export type Signed = string[];

if (parentPort !== null) serve(parentPort);

function serve(port: MessagePort): void {
  const signOnce = createSignOnce();
  port.on('message', ({ keys, messages }: ToSign) => {
    const signed: Signed = messages.map((message) =>
      signatures(message, keys[message.keys] as SigningKeys, signOnce),
    );
    port.postMessage(signed);
  });
}
