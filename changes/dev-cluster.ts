/** The changes of a dev cluster: it is created and deleted, and nothing of it can be changed. */
import { DEV_MEMORY_MEBIBYTES, requireDeletableDevCluster } from '../domain/dev-cluster/rules.ts'
import { minorsOf } from '../domain/kubernetes-cluster/rules.ts'
import { DEV_CLUSTER_IMAGE_COMMAND, DEV_CLUSTER_TEMPLATE } from '../domain/managed-machine/rules.ts'
import { badField, zoneLacks } from '../domain/problem.ts'
import { parsePublicKey } from '../domain/ssh-key/rules.ts'
import { claimDevCluster, releaseDevCluster } from '../db/dev-cluster/index.ts'
import { hasFreeAddress, noFreeAddress } from '../db/public-pool/index.ts'
import { DEV_CLUSTER_RELEASES } from '../domain/kubernetes-cluster/versions.ts'
import { Plan, Template, Zone } from '../resources/catalog/index.ts'
import * as routes from '../resources/dev-cluster/index.ts'
import { DevCluster, devClusterFactsOf, type DevClusterSpec } from '../resources/dev-cluster/index.ts'
import { accountNamespace } from '../resources/index.ts'
import { offersDevClusters } from '../resources/managed-machine/index.ts'
import { Network } from '../resources/network/index.ts'
import { Labels } from '../resources/kit/shapes.ts'
import { changesOf, type Target } from './kit/define.ts'
import { claimMachines, requireMachinePlan } from './kit/machine.ts'
import { requireReadable } from './kit/readable.ts'
import type { World } from './kit/world.ts'
import { requirePrivateNetworks } from './kit/zone.ts'

const ADDRESSES = 'server_ipv6_prefix'

/** Minor versions that are offered, newest first. */
export const offeredDevVersions = (): readonly string[] => minorsOf(DEV_CLUSTER_RELEASES)

const clusterOf = ({ accountId, id }: Target) => ({ accountId, devClusterId: id })

/** Throws 400 for a zone that does not exist, and 409 for one without a network, or whose hosts have no image of dev
 *  clusters. */
function requireDevClusters(world: World, zone: string): void {
  requirePrivateNetworks(world, zone)
  if (!offersDevClusters(world.find(Zone, { name: zone })?.status))
    throw zoneLacks(
      'dev_clusters',
      `The zone ${zone} has no dev clusters: on each host its operator runs: ${DEV_CLUSTER_IMAGE_COMMAND}`,
    )
}

/** Throws 400 for a version that is not offered, a plan that is unknown or too small, and a network of another zone. */
function requireFitting(world: World, accountId: string, { version, plan, networkId, zone }: DevClusterSpec): void {
  const offered = offeredDevVersions()
  if (!offered.includes(version)) throw badField('version', `is not offered here; offered are ${offered.join(', ')}`)
  const { memoryMebibytes } = requireMachinePlan(world, plan, 'plan', DEV_CLUSTER_TEMPLATE)
  if (memoryMebibytes < DEV_MEMORY_MEBIBYTES)
    throw badField('plan', `has ${memoryMebibytes} MiB of memory; a dev cluster needs ${DEV_MEMORY_MEBIBYTES}`)
  const network = networkId && world.find(Network, { namespace: accountNamespace(accountId), name: networkId })
  if (network && network.spec.zone !== zone)
    throw badField('networkId', `is in zone ${network.spec.zone}, not in ${zone}`)
}

export const devClusterChanges = changesOf(DevCluster, {
  name: 'dev_cluster',
  title: 'dev cluster',
  finalizedWhen: 'nothing of the cluster is left',
  factsOf: devClusterFactsOf,
  refers: { networkId: { type: Network, title: 'network', mayFollow: 'creation' } },
  reads: [Zone, Plan, Template],
  readable({ labels, sshKeys }) {
    requireReadable('labels', Labels, labels)
    for (const [index, text] of sshKeys.entries()) {
      const key = parsePublicKey(text)
      if (typeof key === 'string') throw badField(`sshKeys.${index}`, key)
    }
  },
  create: {
    name: 'create',
    needs: 'standing',
    allow({ accountId, spec }, world) {
      requireDevClusters(world, spec.zone)
      requireFitting(world, accountId, spec)
    },
    claim: (tx, { spec, ...target }) => claimDevCluster(tx, { ...clusterOf(target), name: spec.name }),
    release: (tx, target) => releaseDevCluster(tx, clusterOf(target)),
    async tries(tx, { accountId, spec: { zone, networkId, plan, publicIpv4 } }, means) {
      const networkIds = networkId === undefined ? [] : [networkId]
      await claimMachines(tx, means, { accountId, zone, machines: [{ plan, publicIpv4, networkIds }] })
      if (!(await hasFreeAddress(tx, zone, ADDRESSES))) throw noFreeAddress(zone, ADDRESSES)
    },
    detail: ({ zone, name, plan, version }) => ({ zone, name, plan, version }),
    by: { route: routes.createDevCluster },
  },
  changes: {},
  remove: {
    name: 'delete',
    allow: ({ facts }) => requireDeletableDevCluster(facts),
    detail: ({ name }) => ({ name }),
    by: { route: routes.deleteDevCluster },
  },
})
