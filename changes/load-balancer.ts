/** The changes of a load balancer. Functions of REST add and remove members and certificates; all of them call
 *  `requireConfigured`. */
import {
  configurationFault,
  LOAD_BALANCER_MACHINES,
  type LoadBalancerFacts,
  requireConfigurable,
  requireDeletableLoadBalancer,
} from '../domain/load-balancer/rules.ts'
import { MANAGED_IMAGE_COMMAND } from '../domain/managed-machine/rules.ts'
import { badField, conflict, zoneLacks } from '../domain/problem.ts'
import {
  claimLoadBalancer,
  releaseLoadBalancer,
  renameLoadBalancer,
  withdrawLoadBalancerName,
} from '../db/load-balancer/index.ts'
import { Plan, Template, Zone } from '../resources/catalog/index.ts'
import { accountNamespace } from '../resources/index.ts'
import * as routes from '../resources/load-balancer/index.ts'
import {
  configurationOf,
  LoadBalancer,
  loadBalancerFactsOf,
  type LoadBalancerSpec,
} from '../resources/load-balancer/index.ts'
import { offersManagedMachines } from '../resources/managed-machine/index.ts'
import { Network, rangesOf, type StoredNetwork } from '../resources/network/index.ts'
import { Labels, PrintableName } from '../resources/kit/shapes.ts'
import { changesOf, fromBody, type Subject, type Target } from './kit/define.ts'
import { claimMachines, requireMachinePlan } from './kit/machine.ts'
import { requireReadable } from './kit/readable.ts'
import { ownNetwork } from './kit/references.ts'
import type { World } from './kit/world.ts'
import { requirePrivateNetworks } from './kit/zone.ts'

const balancerOf = ({ accountId, id }: Target) => ({ accountId, loadBalancerId: id })

/** Throws what `requirePrivateNetworks` does, and 409 for a zone whose hosts lack the image of the machines. */
function requireLoadBalancers(world: World, zone: string): void {
  requirePrivateNetworks(world, zone)
  if (!offersManagedMachines(world.find(Zone, { name: zone })?.status))
    throw zoneLacks(
      'load_balancers',
      `The zone ${zone} has no load balancers: its hosts have no image for their machines. An operator brings it by ` +
        `\`${MANAGED_IMAGE_COMMAND}\`.`,
    )
}

type Configuration = Pick<LoadBalancerSpec, 'networkId' | 'frontends' | 'backends' | 'certificates'>

/** Throws 400 for a configuration that the proxy would not accept. For a network that does not exist yet, or whose
 *  ranges are unknown, everything is accepted. */
function requireConfiguration(
  world: World,
  accountId: string,
  spec: Configuration,
  ownAddresses: readonly string[],
): void {
  const network = world.find(Network, { namespace: accountNamespace(accountId), name: spec.networkId })
  const { ipv4Cidr, ipv6Prefix } = network === undefined ? NO_RANGES : rangesOf(network)
  if (ipv4Cidr === '' || ipv6Prefix === '') return
  const certificateIds = spec.certificates.map(({ id }) => id)
  const surroundings = { ipv4Cidr, ipv6Prefix, certificateIds, ownAddresses }
  const fault = configurationFault(configurationOf(spec), surroundings)
  if (fault !== undefined) throw badField(fault.field, fault.detail)
}
const NO_RANGES = { ipv4Cidr: '', ipv6Prefix: '' }

/** Throws the refusals of another configuration: 400 for one that the proxy would not accept, and 409 for a balancer
 *  that may not be changed. */
export function requireConfigured(
  { accountId, spec, facts }: Pick<Subject<LoadBalancerSpec, LoadBalancerFacts>, 'accountId' | 'spec' | 'facts'>,
  world: World,
): void {
  requireConfigurable(facts)
  requireConfiguration(world, accountId, spec, facts.ownAddresses)
}

export const loadBalancerChanges = changesOf(LoadBalancer, {
  name: 'load_balancer',
  title: 'load balancer',
  finalizedWhen: 'nothing of the load balancer is left',
  factsOf: loadBalancerFactsOf,
  platform: ['certificates', 'numbered', 'managedBy'],
  refers: {
    networkId: {
      ...ownNetwork('creation'),
      requireUsable(network) {
        const { ipv4Cidr, ipv6Prefix } = rangesOf(network as unknown as StoredNetwork) // the kind is `Network`
        if (ipv4Cidr === '' || ipv6Prefix === '')
          throw conflict('state_not_allowed', 'The network is still being made.')
      },
    },
  },
  reads: [Zone, Plan, Template],
  audited: { frontends: () => ({}), backends: () => ({}) },
  readable({ name, labels }) {
    requireReadable('name', PrintableName, name)
    requireReadable('labels', Labels, labels)
  },
  create: {
    name: 'create',
    operation: 'load_balancer.create',
    needs: 'standing',
    allow({ accountId, spec }, world) {
      requireLoadBalancers(world, spec.zone)
      requireMachinePlan(world, spec.plan)
      requireConfiguration(world, accountId, spec, [])
    },
    async claim(tx, { spec, ...target }) {
      // The network of the same manifest may be created later: the load balancer waits for it.
      const { networkId }: Partial<LoadBalancerSpec> = spec
      const { zone, name, publicIpv4 } = spec
      if (networkId !== undefined)
        await claimLoadBalancer(tx, { ...balancerOf(target), zone, name, networkId, publicIpv4 })
    },
    async tries(tx, { accountId, spec }, means) {
      const { networkId }: Partial<LoadBalancerSpec> = spec
      const machine = { plan: spec.plan, publicIpv4: false, networkIds: networkId === undefined ? [] : [networkId] }
      await claimMachines(tx, means, {
        accountId,
        zone: spec.zone,
        machines: LOAD_BALANCER_MACHINES.map(() => machine),
      })
    },
    release: (tx, target) => releaseLoadBalancer(tx, balancerOf(target)),
    detail: ({ zone, name, networkId, plan }) => ({ zone, name, network_id: networkId, plan }),
    by: { route: routes.createLoadBalancer },
  },
  changes: {
    rename: {
      sets: ['name'],
      action: 'update',
      allow: ({ facts }) => requireConfigurable(facts),
      claim: (tx, { spec, ...target }) => renameLoadBalancer(tx, balancerOf(target), spec.name),
      release: (tx, target, stored) => withdrawLoadBalancerName(tx, balancerOf(target), stored?.spec.name),
      by: fromBody(routes.updateLoadBalancer, ({ name }, spec: LoadBalancerSpec) => ({ name: name ?? spec.name })),
    },
    arrange: {
      sets: ['labels', 'isProtected'],
      action: 'update',
      allow: ({ facts }) => requireConfigurable(facts),
      by: fromBody(routes.updateLoadBalancer, ({ labels, is_protected }, spec: LoadBalancerSpec) => ({
        labels: labels ?? spec.labels,
        isProtected: is_protected ?? spec.isProtected,
      })),
    },
    configure: { sets: ['frontends', 'backends'], action: 'configure', allow: requireConfigured },
  },
  remove: {
    name: 'delete',
    operation: 'load_balancer.delete',
    allow: ({ facts }) => requireDeletableLoadBalancer(facts),
    by: { route: routes.deleteLoadBalancer },
  },
})
