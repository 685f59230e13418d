/** A webhook that sends mail, before its recipient has confirmed the address. */
import { Alert, Stack, Text } from '@mantine/core';
import type { WebhookDetail } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Prose } from '../../parts/values.tsx';
import { addressOf, isMail } from './destination.ts';

export function isUnverified({ url, verifiedAt }: Pick<WebhookDetail, 'url' | 'verifiedAt'>): boolean {
  return isMail(url) && verifiedAt === null;
}

/** The reason of the pause says what happened: the address was not confirmed yet, or the recipient has unsubscribed. */
export function Unverified({ webhook: { id, url, pausedReason } }: { webhook: WebhookDetail }) {
  const verify = useAction({
    run: () => flowhook.webhooks.verify(id),
    changes: ['webhooks'],
    done: ({ message }) => message,
  });
  return (
    <Alert
      color="orange"
      icon={<Icon name="clock" />}
      title={
        <span style={{ overflowWrap: 'anywhere' }}>
          <Prose text={pausedReason ?? 'The address is not verified'} />
        </span>
      }
    >
      <Stack gap="xs" align="flex-start">
        <Text inherit style={{ overflowWrap: 'anywhere' }}>
          Deliveries wait until the recipient opens the link in a mail to <strong>{addressOf(url)}</strong>.
          The link is valid for 7 days. The mail may be in the folder for spam.
        </Text>
        <ActionButton icon="send" action={verify} label="Send the mail again" />
      </Stack>
    </Alert>
  );
}
