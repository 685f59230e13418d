/** `flowhook webhooks`: what the operator needs of webhooks at the shell. */
import type { Command } from 'commander';
import { Problem } from '../model/error.ts';
import { openSealer } from '../service.ts';
import { webhookSecret } from '../webhooks/secret.ts';
import { withStore } from './open.ts';
import { addSettings, configOf } from './settings.ts';

export function addWebhooks(program: Command): void {
  const webhooks = program.command('webhooks').description('webhooks of any team');
  const secret = webhooks
    .command('secret')
    .description('print the secret that signs a webhook’s deliveries (v1, HMAC-SHA256)')
    .argument('<id>', 'the webhook, as the list operation shows it')
    .option('--json', 'print JSON');
  addSettings(secret, ['data', 'database']);
  secret.action(async (id: string, options: Record<string, unknown>) => {
    const config = configOf(options);
    await withStore(config, async ({ store }) => {
      const sealer = await openSealer(config, store);
      for (const team of await store.teams.list()) {
        if ((await store.webhooks.get({ teamId: team.id, id })) === undefined) continue;
        const plain = await webhookSecret({ store, sealer }, { teamId: team.id, id });
        process.stdout.write(
          options.json === true ? `${JSON.stringify({ id, secret: plain })}\n` : `${plain}\n`,
        );
        return;
      }
      throw new Problem('webhook_not_found', { sentence: `No webhook "${id}" found` });
    });
  });
}
