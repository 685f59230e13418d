/** The delivery as a command that a receiver takes: with a signature of now. */
import { Button, Modal, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { flowhook } from '../../client.ts';
import { CommandLine } from '../../parts/command-line.tsx';
import { ErrorBox } from '../../parts/error-box.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Time } from '../../parts/time.tsx';

/** The signature ends after five minutes: a dialog that stays open gets a new one before. */
const RENEW_MS = 4 * 60_000;

const curlQuery = (deliveryId: string) =>
  queryOptions({
    queryKey: ['curl', deliveryId],
    queryFn: ({ signal }) => flowhook.deliveries.curl(deliveryId, { signal }),
    staleTime: 0,
    gcTime: 0,
    refetchInterval: RENEW_MS,
  });

export function SignedCurl({ deliveryId }: { deliveryId: string }) {
  const [isOpen, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button variant="default" leftSection={<Icon name="copy" size={14} />} onClick={open}>
        Signed curl
      </Button>
      <Modal opened={isOpen} onClose={close} title="The same request from your shell" size="xl">
        {isOpen && <Command deliveryId={deliveryId} />}
      </Modal>
    </>
  );
}

function Command({ deliveryId }: { deliveryId: string }) {
  const { data, error, refetch } = useQuery(curlQuery(deliveryId));
  if (error !== null) return <ErrorBox error={error} onRetry={() => void refetch()} />;
  return (
    <Stack gap="sm">
      <Text size="sm">
        It is signed anew, so that a receiver accepts it.{' '}
        {data !== undefined && (
          <>
            The signature expires <Time at={data.validUntil} />.
          </>
        )}
      </Text>
      <CommandLine command={data?.command ?? '…'} />
      {data !== undefined && data.hidden.length > 0 && (
        <Text size="sm" c="dimmed">
          The values of {data.hidden.join(', ')} are replaced by ***: they are never shown.
        </Text>
      )}
    </Stack>
  );
}
