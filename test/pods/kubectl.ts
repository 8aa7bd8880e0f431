import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { buildTool } from '../../tools/cluster/build.ts'
import type { PodCluster } from './node.ts'

/** As an administrator of the cluster. */
export const kubectlOf =
  ({ kubeconfigFile }: Pick<PodCluster, 'kubeconfigFile'>) =>
  async (...flags: readonly string[]): Promise<string> =>
    (await promisify(execFile)(await buildTool('kubectl'), ['--kubeconfig', kubeconfigFile, ...flags])).stdout
