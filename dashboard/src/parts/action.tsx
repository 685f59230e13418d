/** Actions of buttons: the call, and a notification of its success or failure. */
import { Text } from '@mantine/core';
import { modals } from '@mantine/modals';
import { notifications } from '@mantine/notifications';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { readAgain } from '../queries/read-again.ts';
import { Prose } from './values.tsx';

export interface Action<Input, Output> {
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

/** `const { act, isActing } = useAction({ run: () => flowhook.jobs.cancel(jobId), changes: ['jobs'] })`. */
export function useAction<Output, Input = void>(action: Action<Input, Output>) {
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
