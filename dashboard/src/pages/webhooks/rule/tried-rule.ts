/** Tries a rule on past events while it is edited. */
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { TryWebhookRequest, TryWebhookResult } from '../../../../../client/src/flowhook-client.ts';
import { triedRuleQuery } from '../../../queries/webhooks.ts';
import { type RuleForm, ruleOf } from './rule-form.ts';
import { isUnfinished, startOf } from './starts.ts';

export type TriedEvent = TryWebhookResult['tried'][number];
type RuleMistake = NonNullable<TryWebhookResult['mistake']>;

/** The pause in typing after which a rule is tried. */
const PAUSE_MS = 300;

export interface TriedRule {
  /** Oldest first; undefined until the first response. */
  events: readonly TriedEvent[] | undefined;
  /** The events belong to a rule from before the latest changes. */
  isOld: boolean;
  mistakeOf: (field: keyof RuleForm) => Pick<RuleMistake, 'message' | 'from' | 'to'> | undefined;
  hasMistake: boolean;
  /** What matches is gathered, and not sent event by event. */
  isGathered: boolean;
  error: Error | null;
  retry: () => void;
}

export function useTriedRule(
  form: RuleForm,
  {
    workflowId,
    events,
    isOn = true,
  }: { workflowId: string | null; events: readonly string[]; isOn?: boolean },
): TriedRule {
  const read = inputOf(form, { workflowId, events });
  const text = JSON.stringify(read);
  const [settled] = useDebouncedValue(text, PAUSE_MS);
  const { input } = JSON.parse(settled) as typeof read;
  const { data, error, refetch, isPlaceholderData } = useQuery({
    ...triedRuleQuery(input),
    enabled: isOn && input !== undefined && events.length > 0,
    placeholderData: keepPreviousData,
  });
  const isOld = text !== settled || (input !== undefined && isPlaceholderData);
  const mistake = isOn && !isOld ? (read.mistake ?? data?.mistake) : undefined;
  return {
    events: data?.tried,
    isOld,
    mistakeOf: (field) => (mistake?.field === field ? mistake : undefined),
    hasMistake: mistake != null,
    isGathered: form.digest !== '',
    error,
    retry: () => void refetch(),
  };
}

interface Read {
  input?: TryWebhookRequest;
  mistake?: RuleMistake;
}

/** What to try, or a mistake that is found without the service. */
function inputOf(form: RuleForm, of: { workflowId: string | null; events: readonly string[] }): Read {
  const mistake = (field: keyof RuleForm, message: string) => ({
    mistake: { field, message, from: null, to: null },
  });
  if (isUnfinished(startOf(form.filter))) return mistake('filter', 'The filter is not complete');
  try {
    return { input: { ...ruleOf(form), workflowId: of.workflowId, events: [...of.events] } };
  } catch (error) {
    return mistake('template', (error as Error).message);
  }
}
