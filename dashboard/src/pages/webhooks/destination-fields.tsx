/** The choice of a destination, and its address. */
import { Alert, Group, Radio, Stack, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { Icon } from '../../parts/icon.tsx';
import { Prose } from '../../parts/values.tsx';
import { addressRemark, type DestinationKind, destinationOf, meantKind } from './destination.ts';

interface DestinationFieldsProps<Kind extends DestinationKind> {
  kinds: readonly Kind[];
  kind: Kind;
  address: string;
  /** A pasted address of a chat service also chooses that service. */
  onChange: (to: { kind: Kind; address: string }) => void;
  /** Why deliveries to this address would be refused. */
  refusal?: string | null;
  /** Below the address. */
  children?: ReactNode;
}

export function DestinationFields<Kind extends DestinationKind>({
  kinds,
  kind,
  address,
  onChange,
  refusal = null,
  children,
}: DestinationFieldsProps<Kind>) {
  const { asks, help, placeholder } = destinationOf(kind);
  const { mistake, hint } = addressRemark(kind, address);
  return (
    <>
      <Radio.Group
        label="Send to"
        value={kind}
        onChange={(value) => onChange({ kind: value as Kind, address })}
      >
        <Group gap="md" mt={4} style={{ rowGap: 8 }}>
          {kinds.map((value) => (
            <Radio key={value} value={value} label={destinationOf(value).label} size="xs" />
          ))}
        </Group>
      </Radio.Group>
      <Stack gap={4}>
        <TextInput
          label={asks}
          description={help}
          placeholder={placeholder}
          type={kind === 'mail' ? 'email' : 'url'}
          value={address}
          onChange={({ currentTarget: { value } }) => {
            const meant = meantKind(kind, value);
            onChange({ kind: kinds.find((one) => one === meant) ?? kind, address: value });
          }}
          error={mistake}
          required
          maxLength={2_048}
          data-autofocus
        />
        {(refusal ?? hint) !== undefined && (
          <Alert color={refusal === null ? 'gray' : 'orange'} p="xs" icon={<Icon name="warning" size={14} />}>
            <Prose text={refusal ?? hint ?? ''} />
          </Alert>
        )}
        {children}
      </Stack>
    </>
  );
}
