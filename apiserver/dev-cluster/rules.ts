/** What dev clusters need of their surroundings, whichever door a request comes through. */
import { DEV_MEMORY_MEBIBYTES } from '../../domain/dev-cluster.ts'
import { minorsOf } from '../../domain/kubernetes-cluster.ts'
import { DEV_CLUSTER_IMAGE_COMMAND, DEV_CLUSTER_TEMPLATE } from '../../domain/managed-machine.ts'
import { badField, notFound, zoneLacks } from '../../domain/problem.ts'
import { hasFreeAddress, noFreeAddress } from '../../db/public-pool/index.ts'
import { DEV_CLUSTER_RELEASES } from '../../kit/control-planes/versions.ts'
import { Zone } from '../../resources/catalog/index.ts'
import type { DevClusterSpec } from '../../resources/dev-cluster/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { offersDevClusters } from '../../resources/managed-machine/index.ts'
import { Network } from '../../resources/network/index.ts'
import type { AdmissionParts } from '../admission/kind.ts'
import { rehearseMachines, requireMachinePlan } from '../managed-machine/index.ts'
import { requirePrivateNetworks } from '../network/index.ts'
import type { Parts } from '../parts.ts'

/** Throws 400 for a zone that is not there, and 409 for one without a network, or whose hosts have no image of dev
 *  clusters. */
export function requireDevClusters(parts: Pick<Parts, 'caches'>, zone: string, field?: string): void {
  requirePrivateNetworks(parts, zone, field)
  if (offersDevClusters(parts.caches.of(Zone).get({ name: zone })?.status)) return
  throw zoneLacks(
    'dev_clusters',
    `The zone ${zone} has no dev clusters: on each host its operator runs: ${DEV_CLUSTER_IMAGE_COMMAND}`,
  )
}

/** Minor versions that are offered, newest first. */
export const offeredVersions = (): readonly string[] => minorsOf(DEV_CLUSTER_RELEASES)

/** The default one without. Throws 400 for one that is not offered. */
export function requireVersion(version: string | undefined, field = 'version'): string {
  const offered = offeredVersions()
  const chosen = version ?? offered[0] ?? ''
  if (!offered.includes(chosen)) throw badField(field, `is not offered here; offered are ${offered.join(', ')}`)
  return chosen
}

/** Throws 400 for a plan that is unknown or has too little. */
export function requireDevPlan(parts: Pick<Parts, 'caches'>, name: string, field = 'plan'): void {
  const { memoryMebibytes } = requireMachinePlan(parts, name, field, DEV_CLUSTER_TEMPLATE)
  if (memoryMebibytes < DEV_MEMORY_MEBIBYTES)
    throw badField(field, `has ${memoryMebibytes} MiB of memory; a dev cluster needs ${DEV_MEMORY_MEBIBYTES}`)
}

/** Throws 404 for a network that is not there, and 400 for one of another zone. */
export function requireNetwork(
  { caches }: Pick<Parts, 'caches'>,
  accountId: string,
  { networkId, zone }: Pick<DevClusterSpec, 'networkId' | 'zone'>,
  field = 'network_id',
): void {
  if (networkId === undefined) return
  const network = caches.of(Network).get({ namespace: accountNamespace(accountId), name: networkId })
  if (network === undefined) throw notFound('network')
  if (network.spec.zone !== zone) throw badField(field, `is in zone ${network.spec.zone}, not in ${zone}`)
}

/** Throws what its server would be refused with, and 503 `no_free_address` in a zone that has no IPv6 prefix for it. */
export async function rehearseDevCluster(
  parts: AdmissionParts,
  accountId: string,
  { zone, networkId, plan, publicIpv4 }: Pick<DevClusterSpec, 'zone' | 'networkId' | 'plan' | 'publicIpv4'>,
): Promise<void> {
  const networkIds = networkId === undefined ? [] : [networkId]
  await rehearseMachines(parts, { accountId, zone, machines: [{ plan, publicIpv4, networkIds }] })
  if (!(await hasFreeAddress(parts.db, zone, 'server_ipv6_prefix'))) throw noFreeAddress(zone, 'server_ipv6_prefix')
}
