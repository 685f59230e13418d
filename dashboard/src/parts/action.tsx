/** Doing something: a button's call, its success told in a message, its refusal too. */
import { Text } from '@mantine/core';
import { modals } from '@mantine/modals';
import { notifications } from '@mantine/notifications';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { readAgain } from '../queries/read-again.ts';

export interface Action<Input, Output> {
  run: (input: Input) => Promise<Output>;
  /** What is said when it is done; nothing unless told. */
  done?: (output: Output, input: Input) => string | undefined;
  /** Kinds whose queries are read again, without waiting for the stream. */
  changes?: readonly string[];
  /** The page itself says why it was refused, by the `error` of the action. */
  isRefusalShown?: boolean;
  /** After it is done, such as going somewhere. */
  onDone?: (output: Output, input: Input) => void;
}

/** `const { act, isActing } = useAction({ run: () => flowhook.jobs.cancel(jobId), changes: ['jobs'] })`. */
export function useAction<Output, Input = void>(action: Action<Input, Output>) {
  const { mutate, isPending, error } = useMutation<Output, Error, Input>({
    mutationFn: action.run,
    // What a call brought, such as a secret, is not kept for longer than its button is shown.
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

/** Says something in the corner, for some seconds; screen readers hear it. */
export function say(message: string): void {
  notifications.show({ message, withBorder: true });
}

/** Says why something did not work. */
export function sayRefused(error: Error): void {
  notifications.show({
    title: 'That did not work',
    message: error.message,
    color: 'red',
    withBorder: true,
    autoClose: 10_000,
  });
}

/** Asks first, for what cannot be taken back. */
export function confirm({
  title,
  children,
  verb,
  onConfirm,
}: {
  title: string;
  /** What will happen. */
  children: ReactNode;
  /** On the button: `Delete`. */
  verb: string;
  onConfirm: () => void;
}): void {
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
