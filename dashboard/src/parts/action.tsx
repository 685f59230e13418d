/** Buttons and forms that call the service, and notifications of success and failure. */
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
  /** The notification after success; without it there is none. */
  done?: (output: Output, input: Input) => Notice;
  /** Kinds of queries to refetch immediately, without waiting for the stream. */
  changes?: readonly string[];
  /** The page shows `error` itself, so no notification is needed. */
  isErrorShown?: boolean;
  /** Runs after success, such as a navigation. */
  onDone?: (output: Output, input: Input) => void;
}

/** A sentence about a success. If nothing was done, `nothing` is a sentence that says why. */
export type Notice = string | { nothing: string };

/** `const cancel = useAction({ run: () => flowhook.jobs.cancel(jobId), changes: ['jobs'] })`, for an `ActionButton`. */
export function useAction<Output, Input = void>(action: ActionOptions<Input, Output>) {
  const { mutate, isPending, error } = useMutation<Output, Error, Input>({
    mutationFn: action.run,
    // A result such as a secret must not outlive its button.
    gcTime: 0,
    onSuccess: (output, input) => {
      for (const kind of action.changes ?? []) readAgain({ kind, ids: null });
      if (action.done !== undefined) notify(action.done(output, input));
      action.onDone?.(output, input);
    },
    onError: (failure) => {
      if (action.isErrorShown !== true) notifyFailure(failure);
    },
  });
  return { act: mutate, isActing: isPending, error };
}

interface Act {
  act: () => void;
  isActing?: boolean;
}

interface ActionButtonProps extends ButtonProps {
  label: ReactNode;
  /** From `useAction`, or a function that only changes the page. */
  action: Act | (() => void);
  icon?: IconName;
  /** The primary button, which is filled; others are outlined. */
  isMain?: boolean;
  /** Asks for confirmation first; `verb` labels the button that confirms, `keep` (default: Cancel) the other one. */
  asks?: { title: string; children: ReactNode; verb: string; keep?: string };
  'aria-label'?: string;
  'aria-expanded'?: boolean;
  'aria-controls'?: string | undefined;
  title?: string | undefined;
}

export function ActionButton({ label, action, icon, isMain = false, asks, ...props }: ActionButtonProps) {
  const { act, isActing = false } = typeof action === 'function' ? { act: action } : action;
  return (
    <Button
      variant={isMain ? 'filled' : 'default'}
      leftSection={icon !== undefined && <Icon name={icon} size={14} />}
      onClick={() => (asks === undefined ? act() : confirm(asks, act))}
      loading={isActing}
      {...props}
    >
      {label}
    </Button>
  );
}

/** A form with a submit button and, in a dialog, a cancel button. */
export function ActionForm(props: {
  action: Act;
  verb: ReactNode;
  isReady?: boolean;
  /** Closes the dialog. */
  onBack?: () => void;
  /** Beside the buttons: before them in a dialog, otherwise after them. */
  beside?: ReactNode;
  children: ReactNode;
}) {
  const { verb, isReady = true, onBack, beside, children } = props;
  const { act, isActing = false } = props.action;
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
              <ActionButton action={onBack} label="Cancel" />
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

/** Shows a notification for a few seconds; screen readers announce it. */
export function notify(notice: Notice): void {
  const isNothing = typeof notice !== 'string';
  notifications.show({
    message: <Prose text={isNothing ? notice.nothing : notice} />,
    color: isNothing ? 'gray' : undefined,
    autoClose: isNothing ? 10_000 : undefined,
    withBorder: true,
  });
}

/** Shows why an action failed. */
export function notifyFailure(error: Error): void {
  notifications.show({
    title: 'Something went wrong',
    message: <Prose text={error.message} />,
    color: 'red',
    withBorder: true,
    autoClose: 10_000,
  });
}

function confirm(
  { title, children, verb, keep = 'Cancel' }: NonNullable<ActionButtonProps['asks']>,
  onConfirm: () => void,
) {
  modals.openConfirmModal({
    title,
    children: (
      <Text size="sm" component="div">
        {children}
      </Text>
    ),
    labels: { confirm: verb, cancel: keep },
    confirmProps: { color: 'red' },
    onConfirm,
  });
}
