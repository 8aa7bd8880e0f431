/** Load balancers that people make, change and delete past the API must satisfy its rules. Everything is checked and
 *  nothing is claimed: that is the controller's part, once the object is there. */
import { isDeepStrictEqual } from 'node:util'
import { requireConfigurable, requireDeletableLoadBalancer } from '../../domain/load-balancer.ts'
import { forbidden } from '../../domain/problem.ts'
import { claimLoadBalancer, renameLoadBalancer } from '../../db/load-balancer/index.ts'
import { Plan, Template, Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import {
  LoadBalancer,
  loadBalancerFactsOf,
  type LoadBalancerSpec,
  type LoadBalancerStatus,
} from '../../resources/load-balancer/index.ts'
import { Network } from '../../resources/network/index.ts'
import { admitDeletion, requireAccount, requireStanding } from '../admission/account-objects.ts'
import { type AdmissionParts, type AdmissionRules, type AdmittedChange, changesOf } from '../admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../admission/platform-fields.ts'
import { requireLabels, requirePrintableName } from '../admission/readable-fields.ts'
import { rehearse } from '../admission/rehearse.ts'
import { storedOf } from '../list/stored.ts'
import type { LoadBalancerObject } from './load-balancers.ts'
import { requireMachinePlan } from '../managed-machine/index.ts'
import { rehearseLoadBalancer, requireConfiguration, requireLoadBalancers, storedField } from './rules.ts'

const PLATFORM: PlatformFields = {
  noun: 'load balancer',
  finalizer: finalizerOf(LoadBalancer),
  goesWhen: 'nothing of the load balancer is left',
}
const WRITTEN_BY_PLATFORM = ['certificates', 'numbered', 'managedBy'] as const
const NOTHING: Pick<LoadBalancerSpec, (typeof WRITTEN_BY_PLATFORM)[number]> = { certificates: [] }

/** Throws 403 for what only the platform writes, and 400 for what cannot be. */
function requireReadable(parts: AdmissionParts, balancer: LoadBalancerObject, before?: LoadBalancerObject): void {
  const { metadata, spec, status } = balancer
  denyPlatformFields(balancer, before, PLATFORM)
  for (const field of WRITTEN_BY_PLATFORM)
    if (!isDeepStrictEqual(spec[field], (before?.spec ?? NOTHING)[field]))
      throw forbidden(`spec.${field} is written by the platform only.`)
  requirePrintableName(spec)
  requireLabels(spec)
  const { namespace = '' } = metadata
  const options = { fieldOf: storedField, mayNetworkBeMissing: true }
  requireConfiguration(parts.caches, { namespace, status }, spec, options)
}

/** Throws the Problem that the API would answer. */
async function validateCreation(
  parts: AdmissionParts,
  balancer: LoadBalancerObject,
): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: loadBalancerId, namespace = '' },
    spec,
  } = balancer
  const accountId = await requireAccount(parts, balancer, 'load balancers')
  requireReadable(parts, balancer)
  requireLoadBalancers(parts, spec.zone, 'spec.zone')
  requireMachinePlan(parts, spec.plan, 'spec.plan')
  await requireStanding(parts, accountId)
  // The network of the same manifest may come later: the load balancer waits for it.
  if (parts.caches.of(Network).get({ namespace, name: spec.networkId })?.status?.ipv4Cidr !== undefined)
    await rehearse(parts, (tx) => claimLoadBalancer(tx, { accountId, loadBalancerId, ...spec }, 'spec.networkId'))
  await rehearseLoadBalancer(parts, accountId, spec)
  return [{ action: 'load_balancer.create', changes: [] }]
}

/** Throws the Problem that the API would answer. */
async function validateChange(
  parts: AdmissionParts,
  balancer: LoadBalancerObject,
  before: LoadBalancerObject,
): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: loadBalancerId, namespace = '' },
    spec,
  } = balancer
  requireReadable(parts, balancer, before)
  const isChanged = (field: keyof LoadBalancerSpec): boolean => !isDeepStrictEqual(spec[field], before.spec[field])
  const isConfigured = isChanged('frontends') || isChanged('backends')
  const changes = changesOf(['name', 'labels', 'isProtected'], spec, before.spec)
  if (isConfigured || changes.length > 0) requireConfigurable(loadBalancerFactsOf(storedOf(before)))
  const accountId = accountOfNamespace(namespace)
  if (isChanged('name') && accountId !== undefined)
    await rehearse(parts, (tx) => renameLoadBalancer(tx, { accountId, loadBalancerId }, spec.name))
  return [
    ...(isConfigured ? [{ action: 'load_balancer.configure' as const, changes: [] }] : []),
    ...(changes.length > 0 ? [{ action: 'load_balancer.update' as const, changes }] : []),
  ]
}

export const loadBalancerAdmission: AdmissionRules<LoadBalancerSpec, LoadBalancerStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: admitDeletion('load_balancer.delete', (before) =>
    requireDeletableLoadBalancer(loadBalancerFactsOf(storedOf(before))),
  ),
  reads: [Zone, Network, Plan, Template],
}
