/** What buttons and forms do: the call, and a notification of its success or failure. */
import { Button, type ButtonProps, Group, Stack, Text } from '@mantine/core';
import { modals } from '@mantine/modals';
import { notifications } from '@mantine/notifications';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { readAgain } from '../queries/read-again.ts';
import { Icon, type IconName } from './icon.tsx';
import { Prose } from './values.tsx';

interface ActionOptions<Input, Output> {
  run: (input: Input) => Promise<Output>;
  /** What the notification says then; none unless told. */
  done?: (output: Output, input: Input) => Said | undefined;
  /** Kinds of queries to refetch at once, without waiting for the stream. */
  changes?: readonly string[];
  /** The page shows `error` itself, so that no notification is needed. */
  isRefusalShown?: boolean;
  /** After it is done, such as going somewhere. */
  onDone?: (output: Output, input: Input) => void;
}

/** A sentence; with `nothing`, one that says why nothing was done and what to do instead, and looks like no success. */
export type Said = string | { nothing: string };

/** `const cancel = useAction({ run: () => flowhook.jobs.cancel(jobId), changes: ['jobs'] })`, for an `ActionButton`. */
export function useAction<Output, Input = void>(action: ActionOptions<Input, Output>) {
  const { mutate, isPending, error } = useMutation<Output, Error, Input>({
    mutationFn: action.run,
    // A result, such as a secret, is not kept longer than its button is mounted.
    gcTime: 0,
    onSuccess: (output, input) => {
      for (const kind of action.changes ?? []) readAgain({ kind, ids: null });
      const sentence = action.done?.(output, input);
      if (sentence !== undefined) say(sentence);
      action.onDone?.(output, input);
    },
    onError: (refusal) => {
      if (action.isRefusalShown !== true) sayRefused(refusal);
    },
  });
  return { act: mutate, isActing: isPending, error };
}

/** What a button does: an action, or something on the page alone. */
interface Act {
  act: () => void;
  isActing?: boolean;
}

interface ActionButtonProps extends ButtonProps {
  /** Of `useAction`, or what is done on the page alone. */
  action: Act | (() => void);
  icon?: IconName;
  /** The one that stands out; the others are outlined. */
  isMain?: boolean;
  /** Asks first, for what cannot be taken back: what will happen, and the verb on the button that does it. */
  asks?: { title: string; children: ReactNode; verb: string };
  children: ReactNode;
  'aria-label'?: string;
  title?: string | undefined;
}

export function ActionButton({ action, icon, isMain = false, asks, ...props }: ActionButtonProps) {
  const { act, isActing = false } = typeof action === 'function' ? { act: action } : action;
  return (
    <Button
      variant={isMain ? 'filled' : 'default'}
      leftSection={icon !== undefined && <Icon name={icon} size={14} />}
      onClick={() => (asks === undefined ? act() : confirm(asks, act))}
      loading={isActing}
      {...props}
    />
  );
}

/** A form with the button of its action; in a dialog, with a way back beside it. */
export function ActionForm({
  action: { act, isActing = false },
  verb,
  isReady = true,
  onBack,
  beside,
  children,
}: {
  action: Act;
  /** On its button. */
  verb: ReactNode;
  isReady?: boolean;
  /** Of a dialog: closes it. */
  onBack?: () => void;
  /** In the line of the buttons: before those of a dialog, else behind them. */
  beside?: ReactNode;
  children: ReactNode;
}) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        act();
      }}
    >
      <Stack gap="md">
        {children}
        <Group justify={onBack && 'flex-end'}>
          {onBack !== undefined && (
            <>
              {beside}
              <ActionButton action={onBack}>Back</ActionButton>
            </>
          )}
          <Button type="submit" loading={isActing} disabled={!isReady}>
            {verb}
          </Button>
          {onBack === undefined && beside}
        </Group>
      </Stack>
    </form>
  );
}

/** Shows a notification for some seconds; screen readers announce it. */
export function say(said: Said): void {
  const isNothing = typeof said !== 'string';
  notifications.show({
    message: <Prose text={isNothing ? said.nothing : said} />,
    color: isNothing ? 'gray' : undefined,
    autoClose: isNothing ? 10_000 : undefined,
    withBorder: true,
  });
}

/** Shows why something failed. */
export function sayRefused(error: Error): void {
  notifications.show({
    title: 'That did not work',
    message: <Prose text={error.message} />,
    color: 'red',
    withBorder: true,
    autoClose: 10_000,
  });
}

function confirm({ title, children, verb }: NonNullable<ActionButtonProps['asks']>, onConfirm: () => void) {
  modals.openConfirmModal({
    title,
    children: (
      <Text size="sm" component="div">
        {children}
      </Text>
    ),
    labels: { confirm: verb, cancel: 'Back' },
    confirmProps: { color: 'red' },
    onConfirm,
  });
}
