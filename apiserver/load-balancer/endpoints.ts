/** Making, reading, configuring and deleting load balancers. */
import { isDeepStrictEqual } from 'node:util'
import { requireConfigurable, requireDeletableLoadBalancer } from '../../domain/load-balancer.ts'
import type { AuditChange } from '../../domain/audit.ts'
import { claimLoadBalancer, releaseLoadBalancer, renameLoadBalancer } from '../../db/load-balancer/index.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { replacing } from '../../kit/kube/merge-patch.ts'
import { finalizerOf } from '../../resources/define.ts'
import { accountNamespace } from '../../resources/index.ts'
import { newUuid } from '../../kit/sys/random.ts'
import {
  addLoadBalancerCertificate,
  addLoadBalancerMember,
  createLoadBalancer,
  deleteLoadBalancer,
  firstNumber,
  getLoadBalancer,
  getLoadBalancerMetrics,
  listLoadBalancers,
  LoadBalancer,
  type LoadBalancerSpec,
  removeLoadBalancerCertificate,
  removeLoadBalancerMember,
  setLoadBalancerConfiguration,
  toStoredBackend,
  toStoredFrontend,
  type UpdateLoadBalancer,
  updateLoadBalancer,
  updateLoadBalancerMember,
} from '../../resources/load-balancer/index.ts'
import { create } from '../change/create.ts'
import { operate } from '../change/operate.ts'
import { changeObject } from '../plain/change-object.ts'
import { etagOfObject, getObject, labelsOfQuery, listObjects } from '../plain/objects.ts'
import { addCertificate, removeCertificate } from './certificates.ts'
import { addMember, changeMember, configure, removeMember } from './configure.ts'
import type { LoadBalancerObject, LoadBalancers } from './load-balancers.ts'
import { readMetrics } from './metrics.ts'
import { requireMachinePlan, cheapestMachinePlan } from '../managed-machine/index.ts'
import { rehearseLoadBalancer, requireConfiguration, requireLoadBalancers } from './rules.ts'
import type { LoadBalancerParts } from './parts.ts'

export type { LoadBalancerParts } from './parts.ts'

export const loadBalancerEndpoints = (parts: LoadBalancerParts): readonly Endpoint[] => [
  getObject(parts.loadBalancers, getLoadBalancer),
  listObjects(parts, parts.loadBalancers.summaries, listLoadBalancers, ({ zone, label }) => ({
    labels: labelsOfQuery(label),
    fields: { zone },
  })),
  customerEndpoint(createLoadBalancer, (call) => createEndpoint(parts, call)),
  customerEndpoint(updateLoadBalancer, (call) => update(parts, call)),
  customerEndpoint(deleteLoadBalancer, (call) => remove(parts, call)),
  customerEndpoint(setLoadBalancerConfiguration, (call) => configure(parts, call)),
  customerEndpoint(addLoadBalancerMember, (call) => addMember(parts, call)),
  customerEndpoint(updateLoadBalancerMember, (call) => changeMember(parts, call)),
  customerEndpoint(removeLoadBalancerMember, (call) => removeMember(parts, call)),
  customerEndpoint(addLoadBalancerCertificate, (call) => addCertificate(parts, call)),
  customerEndpoint(removeLoadBalancerCertificate, (call) => removeCertificate(parts, call)),
  customerEndpoint(getLoadBalancerMetrics, (call) => readMetrics(parts, call)),
]

async function createEndpoint(
  parts: LoadBalancerParts,
  call: Call<typeof createLoadBalancer, Customer>,
): Promise<Answer> {
  const {
    caller: { accountId },
    body: { zone, name, network_id: networkId, public_ipv4: publicIpv4, labels, ...body },
  } = call
  requireLoadBalancers(parts, zone)
  const { plan = cheapestMachinePlan(parts) } = body
  requireMachinePlan(parts, plan)
  const frontends = body.frontends.map(toStoredFrontend)
  const backends = body.backends.map((backend) => toStoredBackend(backend, () => newUuid(parts.random)))
  const configured = { networkId, frontends, backends, certificates: [] }
  requireConfiguration(parts.caches, { namespace: accountNamespace(accountId), status: undefined }, configured)
  const numbered = firstNumber(configured)
  await rehearseLoadBalancer(parts, accountId, { zone, networkId, plan })
  return create(parts, parts.loadBalancers, call, {
    kind: 'load_balancer.create',
    finalizer: finalizerOf(LoadBalancer),
    detail: { zone, name, network_id: networkId, plan },
    claim: (tx, loadBalancerId) =>
      claimLoadBalancer(tx, { accountId, loadBalancerId, zone, name, networkId, publicIpv4 }),
    release: (tx, loadBalancerId) => releaseLoadBalancer(tx, { accountId, loadBalancerId }),
    specOf: (operation): LoadBalancerSpec => ({
      zone,
      name,
      plan,
      publicIpv4,
      labels,
      isProtected: false,
      ...configured,
      numbered,
      operation,
    }),
  })
}

async function update(parts: LoadBalancerParts, call: Call<typeof updateLoadBalancer, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: loadBalancerId },
    body,
  } = call
  const { loadBalancers } = parts
  const { spec } = await loadBalancers.read(accountId, loadBalancerId)
  const id = { accountId, loadBalancerId }
  const { name } = body
  const written = await changeObject(parts, loadBalancers, call, {
    changes: (balancer) => changesOf(balancer.spec, body),
    patch: (balancer) => {
      requireConfigurable(loadBalancers.factsOf(balancer))
      return patchOf(balancer.spec, body)
    },
    ...(name === undefined || name === spec.name
      ? {}
      : {
          claim: (tx) => renameLoadBalancer(tx, id, name),
          release: (tx) => renameLoadBalancer(tx, id, spec.name),
        }),
  })
  return answerOf(loadBalancers, written)
}

const answerOf = (loadBalancers: LoadBalancers, balancer: LoadBalancerObject): Answer => ({
  status: 200,
  body: { load_balancer: loadBalancers.viewOf(balancer) },
  headers: { etag: etagOfObject(balancer) },
})

const patchOf = (spec: LoadBalancerSpec, { name, labels, is_protected }: UpdateLoadBalancer) => ({
  ...(name === undefined ? {} : { name }),
  ...(labels === undefined ? {} : { labels: replacing(spec.labels, labels) }),
  ...(is_protected === undefined ? {} : { isProtected: is_protected }),
})

const changesOf = (spec: LoadBalancerSpec, body: UpdateLoadBalancer): readonly AuditChange[] =>
  (
    [
      ['name', spec.name, body.name],
      ['labels', spec.labels, body.labels],
      ['is_protected', spec.isProtected, body.is_protected],
    ] as const
  ).flatMap(([field, before, after]) =>
    after === undefined || isDeepStrictEqual(before, after) ? [] : [{ field, before, after }],
  )

function remove(parts: LoadBalancerParts, call: Call<typeof deleteLoadBalancer, Customer>): Promise<Answer> {
  return operate(parts, parts.loadBalancers, call, {
    kind: 'load_balancer.delete',
    validate: requireDeletableLoadBalancer,
    spec: {},
  })
}
