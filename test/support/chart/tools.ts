/** Installs the programs that check the chart: helm and kubeconform, from their Go modules. */
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inPath } from '../in-path.ts';
import { writeSchemas } from './kubernetes-schemas.ts';

const run = promisify(execFile);

const HELM = 'helm.sh/helm/v3/cmd/helm@v3.22.0';
const KUBECONFORM = 'github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0';
const PROMETHEUS_OPERATOR = 'github.com/prometheus-operator/prometheus-operator@v0.85.0';
/** The oldest version that the chart supports, and the newest one. */
export const KUBERNETES = ['1.29.6', '1.37.2'] as const;

/** Without a cache, downloading and building took 116 s on two cores. A test file may take 240 s in total. */
const INSTALL_MS = 180_000;

/** The paths of the programs, and for each version of Kubernetes the directory of its schemas. */
export interface ChartTools {
  helm: string;
  kubeconform: string;
  schemas: Record<(typeof KUBERNETES)[number], string>;
}

/** Returns a sentence that says what is missing, if the tools cannot be installed on this machine. */
export async function chartTools(): Promise<ChartTools | string> {
  if (inPath('go') === undefined) return 'Go, which builds helm and kubeconform, is not installed';
  const directory = join(import.meta.dirname, '../../../node_modules/.cache/chart');
  await mkdir(directory, { recursive: true });
  const signal = AbortSignal.timeout(INSTALL_MS);
  const go = async (...args: string[]) => {
    const env = { ...process.env, GOBIN: directory, GOFLAGS: '-buildvcs=false' };
    return (await run('go', args, { signal, cwd: directory, env })).stdout;
  };
  const sourceOf = async (module: string): Promise<string> =>
    JSON.parse(await go('mod', 'download', '-json', module)).Dir;
  try {
    for (const program of [KUBECONFORM, HELM]) await go('install', program);
    const operator = await sourceOf(PROMETHEUS_OPERATOR);
    const schemas = KUBERNETES.map(async (version) => {
      const path = join(directory, `kubernetes-${version}`);
      await writeSchemas(path, {
        document: join(await sourceOf(`k8s.io/kubernetes@v${version}`), 'api/openapi-spec/swagger.json'),
        custom: [join(operator, 'example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml')],
      });
      return [version, path] as const;
    });
    return {
      helm: join(directory, 'helm'),
      kubeconform: join(directory, 'kubeconform'),
      schemas: Object.fromEntries(await Promise.all(schemas)) as ChartTools['schemas'],
    };
  } catch (error) {
    const { message } = error as Error;
    return `helm and kubeconform could not be built within ${INSTALL_MS / 1_000} s: ${message.split('\n')[0]}`;
  }
}
