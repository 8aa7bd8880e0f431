/** The changes of an edge. In REST, functions select keys of the account. */
import { choosePlacement, edgeMachinesOf, hasPair, membersFault } from '../domain/edge/rules.ts'
import { type IdleFacts, requireDeletable, requireIdle } from '../domain/idle-rules.ts'
import { LOAD_BALANCER_MACHINES } from '../domain/load-balancer/rules.ts'
import { MANAGED_IMAGE_COMMAND } from '../domain/managed-machine/rules.ts'
import { badField, zoneLacks } from '../domain/problem.ts'
import { parsePublicKey } from '../domain/ssh-key/rules.ts'
import { claimEdge, releaseEdge } from '../db/edge/index.ts'
import { claimLoadBalancer } from '../db/load-balancer/index.ts'
import { newUuid } from '../kit/sys/random.ts'
import { capabilitiesOf, Plan, Template, Zone } from '../resources/catalog/index.ts'
import * as routes from '../resources/edge/index.ts'
import { Edge, EdgeMemberInput, type EdgeSpec, type EdgeStatus } from '../resources/edge/index.ts'
import { accountNamespace } from '../resources/index.ts'
import { offersManagedMachines } from '../resources/managed-machine/index.ts'
import { Network, rangesOf } from '../resources/network/index.ts'
import { idleFactsOf } from '../resources/operation/index.ts'
import { PrintableName } from '../resources/kit/shapes.ts'
import { changesOf, type Rules, type Subject, type Target } from './kit/define.ts'
import { claimMachines, requireMachinePlan } from './kit/machine.ts'
import { requireReadable } from './kit/readable.ts'
import { ownNetwork } from './kit/references.ts'
import { type World, worldOf } from './kit/world.ts'
import { requirePrivateNetworks } from './kit/zone.ts'

interface Facts extends IdleFacts {
  /** Addresses of its machines, and of its load balancer. */
  readonly ownAddresses: readonly string[]
}

const edgeOf = ({ accountId, id }: Target) => ({ accountId, edgeId: id })

const ADDRESS_FIELDS = ['publicIpv4', 'publicIpv6', 'privateIpv4', 'privateIpv6'] as const
const ownAddressesOf = ({ machines = [], balancer }: EdgeStatus = {}): readonly string[] => [
  ...machines.flatMap((machine) => ADDRESS_FIELDS.flatMap((field) => machine[field] ?? [])),
  ...(balancer?.addresses ?? []),
]

/** Whether the zone has enough servers for a machine of each role. */
export function hasSeparateEdges(world: World, name: string): boolean {
  const zone = world.find(Zone, { name })
  return zone !== undefined && capabilitiesOf(zone).includes('separate_edges')
}

/** Throws 400 for a zone that does not exist, 503 for one that accepts nothing new, and 409 for one without private
 *  networks or without the image for machines. */
function requireEdges(world: World, zone: string): void {
  requirePrivateNetworks(world, zone)
  if (!offersManagedMachines(world.find(Zone, { name: zone })?.status))
    throw zoneLacks(
      'load_balancers',
      `The hosts of zone ${zone} have no image for it. On each of them its operator runs: ${MANAGED_IMAGE_COMMAND}`,
    )
}

/** Throws 400 for a network of another zone, and for members that it cannot have. For a network that does not exist
 *  yet, everything is accepted. */
function requireMembers(world: World, accountId: string, spec: EdgeSpec, ownAddresses: readonly string[]): void {
  const { zone, networkId, roles, placement, members } = spec
  const network = world.find(Network, { namespace: accountNamespace(accountId), name: networkId })
  if (network !== undefined && network.spec.zone !== zone)
    throw badField('zone', `the network is in zone ${network.spec.zone}`)
  if (members.length > 0 && !roles.includes('load_balancer'))
    throw badField('members', 'are the targets of a load balancer: the edge does not have that role')
  const ipv4Cidr = network === undefined ? '' : rangesOf(network).ipv4Cidr
  const fault = ipv4Cidr === '' ? undefined : membersFault(members, { roles, placement, ipv4Cidr, ownAddresses })
  if (fault !== undefined) throw badField(`members.${fault.index}.${fault.field}`, fault.detail)
}

/** The machines and the load balancer that it still lacks. */
const tries: Rules<EdgeSpec, Facts>['tries'] = async (tx, { accountId, id, spec }, means) => {
  const { zone, roles, placement, plan } = spec
  const world = worldOf(means.caches)
  const namespace = accountNamespace(accountId)
  const known = world.find(Edge, { namespace, name: id })
  const { machines = [], balancer } = known?.status ?? {}
  const { networkId }: Partial<EdgeSpec> = spec // it may come later
  const networkIds = networkId === undefined ? [] : [networkId]
  const missing = edgeMachinesOf(roles, placement).filter(({ name }) => !machines.some((one) => one.name === name))
  const pair = hasPair(roles, placement) && balancer === undefined ? LOAD_BALANCER_MACHINES : []
  await claimMachines(tx, means, {
    accountId,
    zone,
    ...(known === undefined ? {} : { owner: { type: 'edge', id } }),
    machines: [
      ...missing.map(() => ({ plan, publicIpv4: true, networkIds })),
      ...pair.map(() => ({ plan, publicIpv4: false, networkIds })),
    ],
  })
  const loadBalancerId = newUuid(means.random)
  if (pair.length > 0 && networkId !== undefined)
    await claimLoadBalancer(tx, { accountId, loadBalancerId, zone, name: loadBalancerId, networkId, publicIpv4: true })
}

export const edgeChanges = changesOf(Edge, {
  name: 'edge',
  title: 'edge',
  finalizedWhen: 'nothing of the edge is left',
  factsOf: (stored): Facts => ({ ...idleFactsOf(stored), ownAddresses: ownAddressesOf(stored.status) }),
  refers: { networkId: ownNetwork('creation') },
  reads: [Zone, Plan, Template],
  audited: {
    sshKeys: (keys) => ({ ssh_key_count: keys.length }),
    members: (members) => ({ members: members.map(({ name }) => name) }),
  },
  readable({ name, roles, sshKeys, members }) {
    requireReadable('name', PrintableName, name)
    for (const [index, text] of sshKeys.entries()) {
      const key = parsePublicKey(text)
      if (typeof key === 'string') throw badField(`sshKeys.${index}`, key)
    }
    if (roles.includes('bastion') && sshKeys.length === 0)
      throw badField('sshKeys', 'a bastion needs at least one SSH key: nobody could sign in')
    for (const [index, member] of members.entries())
      for (const field of ['name', 'address'] as const)
        requireReadable(`members.${index}.${field}`, EdgeMemberInput.shape[field], member[field])
  },
  create: {
    name: 'create',
    operation: 'edge.sync',
    needs: 'standing',
    allow({ accountId, spec }, world) {
      requireMachinePlan(world, spec.plan)
      requireMembers(world, accountId, spec, [])
      requireEdges(world, spec.zone)
      choosePlacement(spec.placement, { zone: spec.zone, hasSeparateEdges: hasSeparateEdges(world, spec.zone) })
    },
    async claim(tx, { spec, ...target }) {
      // The network of the same manifest may be created later: the edge waits for it.
      const { networkId }: Partial<EdgeSpec> = spec
      if (networkId !== undefined) await claimEdge(tx, { ...edgeOf(target), networkId })
    },
    release: (tx, target) => releaseEdge(tx, edgeOf(target)),
    tries,
    detail: ({ zone, networkId, placement, roles }) => ({
      zone,
      network_id: networkId,
      placement,
      roles: roles.join(','),
    }),
    by: { route: routes.createEdge },
  },
  changes: {
    rename: { sets: ['name'], action: 'update', by: { route: routes.updateEdge } },
    /** The fields that its machines follow. */
    configure: {
      sets: ['roles', 'plan', 'sshKeys', 'members'],
      action: 'update',
      operation: 'edge.sync',
      needs: 'standing',
      allow({ accountId, spec, before, facts }: Subject<EdgeSpec, Facts>, world) {
        if (spec.plan !== before?.plan) requireMachinePlan(world, spec.plan)
        requireMembers(world, accountId, spec, facts.ownAddresses)
        requireEdges(world, spec.zone)
        requireIdle('edge', facts)
      },
      tries,
      by: { route: routes.updateEdge },
    },
  },
  remove: {
    name: 'delete',
    operation: 'edge.delete',
    allow: ({ facts }) => requireDeletable('edge', facts),
    by: { route: routes.deleteEdge },
  },
})
