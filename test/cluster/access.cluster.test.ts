/** Rights on a real API server: roles of accounts as they are generated, and agents with what their chart gives them.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, it } from 'vitest'
import { openClient } from '../../kit/kube/client.ts'
import { installCrds } from '../../kit/kube/crd.ts'
import { crds } from '../../controllers/kit/crds.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import type { Store } from '../../kit/kube/store.ts'
import { systemClock as clock } from '../../kit/sys/clock.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { openHelm } from '../charts/helm.ts'
import { tryAccountRoles, tryConfinement } from '../resources/access-rules.ts'
import { type RealCluster, startRealCluster } from './real-cluster.ts'

const START_MILLISECONDS = 900_000 // the first time, the tools are built
const SYSTEM = 'svccloud-system'
let cluster: RealCluster
let connection: ReturnType<typeof openHttpsTransport>
let admin: Store
/** Acts as the user: the API server judges every request as if the user had sent it. */
const as = (user: string): Store =>
  openClient({
    transport: (request) =>
      connection.transport({ ...request, headers: { ...request.headers, 'impersonate-user': user } }),
    fieldManager: 'tests',
    clock,
    random,
  })

beforeAll(async () => {
  await buildTool('helm')
  cluster = await startRealCluster()
  connection = openHttpsTransport(await readKubeconfig(cluster.kubeconfigFile, clock))
  admin = openClient({ transport: connection.transport, fieldManager: 'tests', clock, random })
  await installCrds(admin, crds(), clock)
}, START_MILLISECONDS)

afterAll(async () => {
  await connection?.close()
  await cluster?.stop()
})

it('people are held to their role and their account', () => tryAccountRoles(admin, as))

it('agents are held to their node', async () => {
  const helm = await openHelm(cluster.kubeconfigFile)
  try {
    const nodes = ['n1', 'n2'].flatMap((name, index) => [
      '--set',
      `nodes[${index}].name=${name},nodes[${index}].host=host-${index}`,
    ])
    await helm.must(
      'install',
      'agents',
      join(import.meta.dirname, '../../charts/svccloud-node-agent'),
      '-n',
      SYSTEM,
      '--create-namespace',
      ...nodes,
    )
    await tryConfinement(admin, (node) => as(`system:serviceaccount:${SYSTEM}:agents-${node}`))
  } finally {
    await helm.close()
  }
})
