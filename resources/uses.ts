/** Unique values that objects have, according to the objects themselves. They stay theirs when PostgreSQL has no claims
 *  for them.
 *  The values of edges, databases and clusters belong to their servers and balancers. */
import type { Use } from '../domain/claim/use.ts'
import type { FloatingIpSpec, FloatingIpStatus } from './floating-ip/index.ts'
import type { LoadBalancerSpec, LoadBalancerStatus } from './load-balancer/index.ts'
import type { RouterStatus } from './router/index.ts'
import type { ServerSpec, ServerStatus } from './server/index.ts'

interface Of<Spec, Status> {
  readonly spec: Spec
  readonly status?: Status | undefined
}

const use = (kind: Use['kind'], scope: string, value: string | undefined): readonly Use[] =>
  value === undefined ? [] : [{ kind, scope, value }]

export function usesOfServer(
  { spec, status }: Of<Pick<ServerSpec, 'zone' | 'hostname'>, ServerStatus>,
  accountId: string,
): readonly Use[] {
  const { macAddress, publicIpv4, publicIpv6, interfaces = [] } = status ?? {}
  return [
    ...use('hostname', `${accountId}/${spec.zone}`, spec.hostname),
    ...use('mac', '', macAddress),
    ...use('address', '', publicIpv4),
    ...use('address', '', publicIpv6),
    ...interfaces.flatMap((each) => [
      ...use('mac', '', each.macAddress),
      ...use('network', each.networkId, each.ipv4Address),
      ...use('network', each.networkId, each.ipv6Address),
    ]),
  ]
}

export const usesOfFloatingIp = ({ spec, status }: Of<FloatingIpSpec, FloatingIpStatus>): readonly Use[] =>
  use('address', '', status?.address ?? spec.address)

export const usesOfRouter = ({ status }: Of<unknown, RouterStatus>): readonly Use[] =>
  use('address', '', status?.publicIpv4)

export const usesOfLoadBalancer = ({ spec, status }: Of<LoadBalancerSpec, LoadBalancerStatus>): readonly Use[] => [
  ...use('address', '', status?.publicIpv4),
  ...use('address', '', status?.publicIpv6),
  ...use('network', spec.networkId, status?.privateIpv4),
  ...use('network', spec.networkId, status?.privateIpv6),
]
