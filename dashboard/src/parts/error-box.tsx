/** An error: its sentence, the request id for the log, and a retry button. */
import { Alert, Button, Center, Group, Stack, Text } from '@mantine/core';
import { FlowhookError } from 'flowhook-client';
import { Copy } from './copy.tsx';
import { Prose } from './prose.tsx';

export interface ErrorBoxProps {
  error: Error;
  /** What could not be done, such as `The runs could not be read`. */
  title?: string;
  onRetry?: () => void;
  /** Centred on an otherwise empty page. */
  isPage?: boolean;
}

/** Shown in place of what could not be loaded. */
export function ErrorBox({ error, title = 'That did not work', onRetry, isPage = false }: ErrorBoxProps) {
  const box = (
    <Alert color="red" variant="light" title={title} role="alert" maw={640}>
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          <Prose text={error.message} />
        </Text>
        {error instanceof FlowhookError && error.requestId !== null && (
          <Group gap={4}>
            <Text size="xs" c="dimmed">
              Request {error.requestId}
            </Text>
            <Copy value={error.requestId} label="Copy the id of the request" />
          </Group>
        )}
        {onRetry !== undefined && (
          <Button variant="default" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
  return isPage ? (
    <Center component="main" mih="100dvh" p="md">
      {box}
    </Center>
  ) : (
    box
  );
}
