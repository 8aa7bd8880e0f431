/** The real Kubernetes API is killed while kubectl watches and waits. */
import { afterAll, beforeAll, it } from 'vitest'
import { buildTool } from '../../tools/cluster/build.ts'
import { type RealCluster, startRealCluster } from './real-cluster.ts'
import { tryRestart } from './restart.ts'

const START_MILLISECONDS = 900_000 // the first time, the tools are built
let cluster: RealCluster

beforeAll(async () => {
  await buildTool('kubectl')
  cluster = await startRealCluster()
}, START_MILLISECONDS)
afterAll(async () => cluster?.stop())

it(
  'a watch ends, a wait continues, nothing that was written is lost',
  () => tryRestart(cluster.kubeconfigFile, () => cluster.crash()),
  180_000,
)
