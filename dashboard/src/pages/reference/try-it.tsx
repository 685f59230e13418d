/** Makes a call that only reads, with the session in the place of a key, and shows what came back. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { ErrorBox } from '../../parts/error-box.tsx';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { bytes, duration } from '../../parts/quantity.ts';
import { tone } from '../../parts/state-badge.tsx';
import { type Answer, ask } from './ask.ts';
import type { Operation } from './operations.ts';
import type { OperationRequest } from './request.ts';

export function TryIt({ operation, request }: { operation: Operation; request: OperationRequest }) {
  const { missing, path, headers } = request;
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => ask({ path, headers, withSession: operation.security.length > 0 }),
  });
  return (
    <Stack gap="xs">
      <Group gap="sm">
        <Button
          leftSection={<Icon name="send" size={14} />}
          disabled={missing.length > 0}
          loading={isPending}
          onClick={() => mutate()}
        >
          Send
        </Button>
        <Text size="xs" c="dimmed">
          {missing.length > 0 ? `Fill in ${missing.join(', ')} first` : 'As you, with what this key may do.'}
        </Text>
      </Group>
      {error !== null && <ErrorBox error={error} title="The call was not answered" />}
      {data !== undefined && <Shown answer={data} />}
    </Stack>
  );
}

function Shown({ answer: { status, statusText, tookMs, headers, text, size, isWhole } }: { answer: Answer }) {
  return (
    <section aria-label="What came back">
      <Group gap="sm" mb={4} role="status">
        <Text span size="sm" fw={600} c={tone(status < 400 ? 'good' : 'bad')}>
          {status} {statusText}
        </Text>
        <Text span size="xs" c="dimmed" className="numbers">
          {duration(tookMs)}, {isWhole ? bytes(size) : `the first ${bytes(size)}`}
        </Text>
      </Group>
      {headers.map(([name, value]) => (
        <Text key={name} size="xs" ff="monospace" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {name}: {value}
        </Text>
      ))}
      {text !== '' && <JsonView value={text} label="The body that came back" maxHeight="360px" />}
    </section>
  );
}
