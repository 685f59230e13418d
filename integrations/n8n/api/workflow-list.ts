/** The workflows of a team, for drop-downs. */
import type { ILoadOptionsFunctions, INodePropertyOptions } from 'n8n-workflow';
import { readPages } from './pages.ts';

/** Enough for a drop-down. Other workflows can be entered by id. */
const MOST = 5_000;

export async function listWorkflowOptions(caller: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
  const options: INodePropertyOptions[] = [];
  for await (const { id, name } of readPages<{ id: string; name: string }>(caller, {
    path: '/v1/workflows',
    under: 'workflows',
    most: MOST,
  })) {
    options.push({ name: name === id ? id : `${name} (${id})`, value: id });
  }
  return options;
}
