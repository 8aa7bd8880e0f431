/** The two machines of a load balancer: the configuration of each, and what their reports say together. Pure. */
import { parseNetwork } from '../../../domain/network/addresses.ts'
import { balancerRuleset } from '../../../domain/load-balancer/ruleset.ts'
import { backendSection, certificateFile, proxyConfiguration } from '../../../domain/load-balancer/haproxy.ts'
import { LOAD_BALANCER_MACHINES } from '../../../domain/load-balancer/rules.ts'
import { keepalivedConfiguration } from '../../../domain/load-balancer/keepalived.ts'
import type { LoadBalancerClaim, SealedCertificate } from '../../../db/load-balancer/index.ts'
import {
  configurationOf,
  LoadBalancer,
  type LoadBalancerStatus,
  memberIdOf,
  numberOf,
} from '../../../resources/load-balancer/index.ts'
import type { MachineDocumentParts } from '../../../resources/managed-machine/index.ts'
import {
  type ConfigurationId,
  configurationFingerprint,
  type Machine,
  type MachineDemand,
  machineName,
  type Owner,
} from '../managed-machine/index.ts'
import type { LoadBalancerObject } from './observed.ts'

/** Roles with their priorities: the first machine gets the addresses first. */
const ROLES: Readonly<Record<Role, number>> = { a: 200, b: 100 }
type Role = (typeof LOAD_BALANCER_MACHINES)[number]
/** The same everywhere: the two machines communicate only with each other. */
const ROUTER_ID = 51
const HOSTNAME_CHARACTERS = 12
const PATHS = {
  certificates: '@ROOT@/certificates',
  serverState: '@RUN@/haproxy.state',
} as const
/** Written by the script of the machines. */
const FAULT_FILE = '@RUN@/proxy-fault'

export const isRole = (role: string): role is Role => role in ROLES

export function balancerOwner({ metadata, spec }: LoadBalancerObject, accountId: string): Owner {
  const { name: id, namespace = '', uid = '' } = metadata
  return { type: 'load_balancer', id, uid, namespace, accountId, zone: spec.zone, resource: LoadBalancer }
}

/** The desired machines of a load balancer. */
export function loadBalancerDemands(
  balancer: LoadBalancerObject,
  accountId: string,
  claim: LoadBalancerClaim,
  machines: readonly Machine[],
): readonly MachineDemand[] {
  const { metadata, spec } = balancer
  const short = (metadata.uid ?? '').replaceAll('-', '').slice(0, HOSTNAME_CHARACTERS)
  const { shared, publicIpv4, publicIpv6 } = claim
  return LOAD_BALANCER_MACHINES.map((role) => ({
    role,
    hostname: `lb-${short}-${role}`,
    plan: spec.plan,
    publicIpv4: false,
    networkIds: [spec.networkId],
    sharedAddresses: [
      { address: shared.ipv4Address, networkId: spec.networkId },
      { address: shared.ipv6Address, networkId: spec.networkId },
      ...[publicIpv4, publicIpv6].flatMap((held) => (held === undefined ? [] : [{ address: held.address }])),
    ],
    configuration: configurationIdOf(balancer, accountId, { claim, machines, role }),
  }))
}

interface Surroundings {
  readonly claim: LoadBalancerClaim
  readonly machines: readonly Machine[]
  readonly role: Role
}

/** Undefined until both machines have their addresses: each needs those of the other. */
function configurationIdOf(
  balancer: LoadBalancerObject,
  accountId: string,
  surroundings: Surroundings,
): ConfigurationId | undefined {
  const reach = reachOf(balancer, accountId, surroundings)
  if (reach === undefined) return undefined
  const { spec } = balancer
  const { generation, digest } = numberOf(spec)
  const certificates = spec.certificates.map(({ id, fingerprint }) => [id, fingerprint])
  return { generation, fingerprint: configurationFingerprint([digest, certificates, reach]) }
}

/** How a machine takes over the addresses, and which traffic may reach it there. */
function reachOf(
  balancer: LoadBalancerObject,
  accountId: string,
  { claim, machines, role }: Surroundings,
): Required<Pick<MachineDocumentParts, 'keepalived' | 'nftables'>> | undefined {
  const owner = balancerOwner(balancer, accountId)
  const machineOf = (of: Role) => machines.find(({ serverId }) => serverId === machineName(owner, of))
  const [own, peer] = [machineOf(role), machineOf(role === 'a' ? 'b' : 'a')]
  const at = own?.interfaces.find(({ networkId }) => networkId === claim.networkId)
  const other = peer?.interfaces.find(({ networkId }) => networkId === claim.networkId)
  if (own?.publicMacAddress === undefined || at === undefined || other === undefined) return undefined
  const [inside, outside] = [interfaceOf(at.macAddress), interfaceOf(own.publicMacAddress)]
  const { shared, publicIpv4, publicIpv6 } = claim
  const addresses = [publicIpv4, publicIpv6].flatMap((held) => (held === undefined ? [] : [held.address]))
  const config = keepalivedConfiguration({
    heartbeat: { interface: inside, ownAddress: at.ipv4Address, peerAddress: other.ipv4Address },
    routerId: ROUTER_ID,
    priority: ROLES[role],
    shared: [
      { address: shared.ipv4Address, prefix: parseNetwork(claim.ipv4Cidr)?.prefix ?? 32, interface: inside },
      { address: shared.ipv6Address, prefix: parseNetwork(claim.ipv6Prefix)?.prefix ?? 128, interface: inside },
      ...(publicIpv4 === undefined
        ? []
        : [{ address: publicIpv4.address, prefix: publicIpv4.prefix, interface: outside }]),
      // No other host is in its prefix, and its replies take the route of those from the machine's own address.
      ...(publicIpv6 === undefined ? [] : [{ address: publicIpv6.address, prefix: 128, interface: outside }]),
    ],
    ...(publicIpv4 === undefined
      ? {}
      : { publicRoute: { address: publicIpv4.address, gateway: publicIpv4.gateway, interface: outside } }),
    faultFile: FAULT_FILE,
  })
  return { keepalived: { config }, nftables: balancerRuleset({ interface: outside, addresses }) }
}

const interfaceOf = (macAddress: string): string => `@IF:${macAddress}@`

export interface OpenedCertificate extends Pick<SealedCertificate, 'id' | 'certificate'> {
  readonly privateKey: string
}

/** Certificates that a frontend uses. */
export const usedCertificates = ({ spec }: LoadBalancerObject): readonly string[] => [
  ...new Set(spec.frontends.flatMap(({ certificateIds }) => certificateIds)),
]

/** The configuration document of one machine; undefined while it is incomplete. */
export function loadBalancerDocument(
  balancer: LoadBalancerObject,
  accountId: string,
  surroundings: Surroundings,
  certificates: readonly OpenedCertificate[],
): MachineDocumentParts | undefined {
  const reach = reachOf(balancer, accountId, surroundings)
  if (reach === undefined) return undefined
  return {
    haproxy: {
      config: proxyConfiguration(configurationOf(balancer.spec), PATHS),
      certificates: Object.fromEntries(
        certificates.map(({ id, certificate, privateKey }) => [certificateFile(id), certificate + privateKey]),
      ),
    },
    ...reach,
  }
}

/** What the machines report, in the form of the status. A report comes from a guest: only names that the spec has are
 *  accepted, and only health depends on it. */
export function reportedOf(
  balancer: LoadBalancerObject,
  machines: readonly Machine[],
): Pick<LoadBalancerStatus, 'nodes' | 'members'> {
  const present = machines.filter(({ role, isDeleting }) => isRole(role) && !isDeleting)
  const active = present.find(({ report }) => report?.keepalived?.state === 'master')
  const found = new Map(
    (active?.report?.haproxy?.servers ?? []).map(([backend, id, status]) => [`${backend}/${id}`, status]),
  )
  return {
    nodes: present.map((machine) => ({
      id: machine.serverId,
      role: machine === active ? 'active' : 'standby',
      isHealthy: machine.isHealthy,
      configurationGeneration: machine.running?.generation ?? 0,
      addresses: [
        ...machine.interfaces.flatMap(({ ipv4Address, ipv6Address }) => [ipv4Address, ipv6Address]),
        machine.publicIpv4,
        machine.publicIpv6,
      ].filter((address): address is string => address !== undefined && address !== ''),
    })),
    members: balancer.spec.backends.flatMap(({ name: backend, members }) =>
      members.flatMap((member) => {
        const id = memberIdOf(member)
        const status = found.get(`${backendSection(backend)}/${id}`)
        return status === 'up' || status === 'drain' || status === 'down'
          ? [{ backend, id, isHealthy: status !== 'down' }]
          : []
      }),
    ),
  }
}

/** Every machine reports that it does not have the shared addresses. */
export const isOwnerless = (machines: readonly Machine[]): boolean =>
  machines.length > 0 &&
  machines.every(({ report }) => report?.keepalived !== undefined && report.keepalived.state !== 'master')

/** The configuration that every machine runs; undefined while they differ. */
export function appliedConfiguration(
  balancer: LoadBalancerObject,
  demands: readonly MachineDemand[],
  machines: readonly Machine[],
): LoadBalancerStatus['applied'] {
  const isEverywhere = demands.every(({ role, configuration }) => {
    const running = machines.find((machine) => machine.role === role && !machine.isDeleting)?.running
    return (
      configuration !== undefined &&
      running?.generation === configuration.generation &&
      running.fingerprint === configuration.fingerprint
    )
  })
  return isEverywhere ? numberOf(balancer.spec) : undefined
}
