/** The pages of docs/reference that are generated from the code. */
import { cliReference } from './cli.ts';
import { errorsReference } from './errors.ts';
import { eventsReference } from './events.ts';
import { metricsReference } from './metrics.ts';
import { settingsReference } from './settings.ts';

/** @returns the text of each page by its name below docs/reference */
export async function references(): Promise<Record<string, string>> {
  return {
    'settings.md': settingsReference,
    'cli.md': await cliReference(),
    'errors.md': errorsReference,
    'events.md': eventsReference,
    'metrics.md': metricsReference,
  };
}
