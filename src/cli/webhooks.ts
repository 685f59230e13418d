/** `flowhook webhooks`: what the operator needs of webhooks at the shell. */
import type { Command } from 'commander';
import { openSealer } from '../service.ts';
import { webhookSecret } from '../webhooks/secret.ts';
import { NotFoundError } from './exit.ts';
import { addStoreOptions, print, withStore } from './open.ts';
import type { Options } from './settings.ts';

export function addWebhooks(program: Command): void {
  const webhooks = program.command('webhooks').description('webhooks of any team');
  const secret = webhooks
    .command('secret')
    .description('print the secret that signs a webhook’s deliveries (v1, HMAC-SHA256)')
    .argument('<id>', 'the webhook, as the list operation shows it');
  addStoreOptions(secret).action((id: string, options: Options) =>
    withStore(options, { make: false }, async (store, config) => {
      const sealer = await openSealer(config, store);
      for (const { id: teamId } of await store.teams.list()) {
        if ((await store.webhooks.get({ teamId, id })) === undefined) continue;
        const plain = await webhookSecret({ store, sealer }, { teamId, id });
        print(options, { id, secret: plain }, [plain]);
        return;
      }
      throw new NotFoundError(
        `No webhook "${id}" found. GET /v1/integrations/webhooks/list shows those of a team`,
      );
    }),
  );
}
