/** kubectl and REST on a real Kubernetes API, whose writes go through the webhook; the guests are simulated. */
import { afterAll, beforeAll, it } from 'vitest'
import type { ResourceType } from '../../kit/kube/object.ts'
import { Server } from '../../resources/server/index.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { Customer } from '../e2e/customer.ts'
import { kubectlOf, tryEqualInterfaces } from '../e2e/equal-interfaces.ts'
import type { Product } from '../e2e/product.ts'
import { type Processes, startProcesses } from './processes.ts'
import { type RealCluster, startRealCluster } from './real-cluster.ts'

const START_MILLISECONDS = 900_000 // the first time, the tools are built
const RoleBinding: ResourceType<undefined> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'RoleBinding',
  plural: 'rolebindings',
  scope: 'Namespaced',
}
let cluster: RealCluster
let processes: Processes

beforeAll(async () => {
  await buildTool('kubectl')
  cluster = await startRealCluster()
  processes = await startProcesses(cluster)
}, START_MILLISECONDS)
afterAll(async () => {
  await processes?.stop()
  await cluster?.stop()
})

it('a member uses either interface', async () => {
  const { admin, endpoints } = processes
  // signing up needs the addresses only
  const customer = await Customer.signUp(() => ({ endpoints }) as Product, 'interfaces@example.com')
  await customer.addSshKey()
  const { server, operation } = await customer.createServer({
    zone: 'eu-1a',
    hostname: 'by-rest',
    plan: 'tiny',
    template: 'tiny-linux',
  })
  await customer.finished(operation.id)
  const namespace = (await admin.list(Server)).items[0]?.metadata.namespace ?? ''

  const { file, username } = await processes.newUser(namespace, 'gitops')
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'svccloud:member' }
  const subjects = [{ kind: 'ServiceAccount', name: 'gitops', namespace }]
  const binding = { metadata: { name: 'gitops', namespace }, spec: undefined, subjects, roleRef }
  await admin.create(RoleBinding, binding)
  await tryEqualInterfaces({ customer, kubectl: kubectlOf(file, namespace), username }, server)
})
