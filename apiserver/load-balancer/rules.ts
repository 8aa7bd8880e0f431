/** What load balancers need of their surroundings, whichever door a request comes through. */
import {
  configurationFault,
  type ConfigurationSurroundings,
  LOAD_BALANCER_MACHINES,
} from '../../domain/load-balancer.ts'
import { badField, conflict, notFound, zoneLacks } from '../../domain/problem.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { configurationOf, type LoadBalancerSpec, type LoadBalancerStatus } from '../../resources/load-balancer/index.ts'
import { offersManagedMachines } from '../../resources/managed-machine/index.ts'
import { Network, rangesOf } from '../../resources/network/index.ts'
import { MANAGED_IMAGE_COMMAND } from '../../domain/managed-machine.ts'
import { requirePrivateNetworks } from '../network/index.ts'
import type { AdmissionParts } from '../admission/kind.ts'
import { rehearseMachines } from '../managed-machine/index.ts'
import type { Parts } from '../parts.ts'

/** Throws what `requirePrivateNetworks` does, and 409 for a zone whose hosts lack the image of the machines. */
export function requireLoadBalancers(parts: Pick<Parts, 'caches'>, zone: string, field = 'zone'): void {
  requirePrivateNetworks(parts, zone, field)
  if (!offersManagedMachines(parts.caches.of(Zone).get({ name: zone })?.status))
    throw zoneLacks(
      'load_balancers',
      `The zone ${zone} has no load balancers: its hosts have no image for their machines. An operator brings it by ` +
        `\`${MANAGED_IMAGE_COMMAND}\`.`,
    )
}

/** Throws what the two machines would be refused with. */
export const rehearseLoadBalancer = (
  parts: AdmissionParts,
  accountId: string,
  { zone, networkId, plan }: Pick<LoadBalancerSpec, 'zone' | 'networkId' | 'plan'>,
): Promise<void> =>
  rehearseMachines(parts, {
    accountId,
    zone,
    machines: LOAD_BALANCER_MACHINES.map(() => ({ plan, publicIpv4: false, networkIds: [networkId] })),
  })

type Configured = Pick<LoadBalancerSpec, 'networkId' | 'frontends' | 'backends' | 'certificates'>

/** Throws 400 for a configuration that the proxy would not take. Of a network that nobody knows yet, or whose ranges
 *  nobody knows, everything is believed, where that may be. */
export function requireConfiguration(
  caches: Caches,
  { namespace, status }: { readonly namespace: string; readonly status: LoadBalancerStatus | undefined },
  spec: Configured,
  { fieldOf = (field: string) => field, mayNetworkBeMissing = false } = {},
): void {
  const network = caches.of(Network).get({ namespace, name: spec.networkId })
  if (network === undefined) {
    if (mayNetworkBeMissing) return
    throw notFound('network')
  }
  const ranges = rangesOf(network)
  if (ranges.ipv4Cidr === '' || ranges.ipv6Prefix === '') {
    if (mayNetworkBeMissing) return
    throw conflict('state_not_allowed', 'The network is still being made.')
  }
  const fault = configurationFault(configurationOf(spec), surroundingsOf(spec, status, ranges))
  if (fault !== undefined) throw badField(fieldOf(fault.field), fault.detail)
}

const surroundingsOf = (
  { certificates }: Configured,
  status: LoadBalancerStatus | undefined,
  { ipv4Cidr, ipv6Prefix }: Pick<ConfigurationSurroundings, 'ipv4Cidr' | 'ipv6Prefix'>,
): ConfigurationSurroundings => ({
  ipv4Cidr,
  ipv6Prefix,
  certificateIds: certificates.map(({ id }) => id),
  ownAddresses: [
    status?.publicIpv4,
    status?.publicIpv6,
    status?.privateIpv4,
    status?.privateIpv6,
    ...(status?.nodes ?? []).flatMap(({ addresses }) => addresses),
  ].filter((address) => address !== undefined),
})

/** `backends.0.members.3.address` as an object in Kubernetes has it. */
export const storedField = (field: string): string =>
  `spec.${field.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase())}`
