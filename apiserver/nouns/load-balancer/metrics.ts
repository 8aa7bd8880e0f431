/** The traffic of a load balancer, as reported by the machine that has its addresses. */
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { nodeNamespace } from '../../../resources/instance/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import {
  type CountingMachine,
  type getLoadBalancerMetrics,
  toLoadBalancerMetrics,
} from '../../../resources/load-balancer/index.ts'
import { ManagedMachine, reportOf } from '../../../resources/managed-machine/index.ts'
import { Server } from '../../../resources/server/index.ts'
import type { LoadBalancerObject } from './objects.ts'
import type { LoadBalancerParts } from './parts.ts'

export async function readMetrics(
  parts: LoadBalancerParts,
  { caller: { accountId }, params: { id } }: Call<typeof getLoadBalancerMetrics, Customer>,
): Promise<Answer> {
  const balancer = await parts.loadBalancers.read(accountId, id)
  return { status: 200, body: toLoadBalancerMetrics(balancer.spec, await countedBy(parts, accountId, balancer)) }
}

/** Undefined while no machine has the addresses, or it has not reported yet. */
async function countedBy(
  { caches, store }: LoadBalancerParts,
  accountId: string,
  { status }: LoadBalancerObject,
): Promise<CountingMachine | undefined> {
  const nodeId = status?.nodes?.find(({ role }) => role === 'active')?.id
  if (nodeId === undefined) return undefined
  const server = caches.of(Server).get({ namespace: accountNamespace(accountId), name: nodeId })
  const [uid, node] = [server?.metadata.uid, server?.status?.nodeName]
  if (uid === undefined || node === undefined) return undefined
  const machine = await store.get(ManagedMachine, { namespace: nodeNamespace(node), name: uid })
  const { report: text, reportedAt: observedAt } = machine?.status ?? {}
  const report = reportOf(text)
  return report === undefined || observedAt === undefined ? undefined : { nodeId, observedAt, report }
}
