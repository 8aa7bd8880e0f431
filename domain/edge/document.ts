/** The configuration of the machines of network edges: the files of their programs, generated from the desired state of
 *  the edge. Pure. The machine fills in names between `@`: its folders, and the names of its interfaces. */
import { formatNetwork, overlaps, parseNetwork } from '../network/addresses.ts'
import type { EdgeMember, EdgeRole } from './rules.ts'
import { proxyConfiguration } from '../load-balancer/haproxy.ts'
import {
  HEALTH_COUNT,
  HEALTH_INTERVAL_SECONDS,
  HEALTH_TIMEOUT_SECONDS,
  IDLE_TIMEOUT_SECONDS,
  type LoadBalancerConfiguration,
} from '../load-balancer/rules.ts'
import { CLOSED_INPUT } from '../managed-machine/ruleset.ts'
import { gatewayOf, NAT64_PREFIX } from '../network/rules.ts'
import { derivedId } from '../uuid.ts'

/** The user for signing in to a bastion. */
export const BASTION_USER = 'admin'

/** The prefix of the translating program. Under the well-known prefix it would refuse private IPv4 addresses (RFC 6052,
 *  section 3.1). */
const INNER_PREFIX = 'fd00:64:0:1::/96'
/** The program's own address: the source of its ICMP errors. */
const INNER_IPV6 = 'fd00:64::1'
/** IPv4 addresses that IPv6 ones are translated to. They are used inside the machine only. */
const INNER_POOLS = ['100.127.0.0/16', '10.127.0.0/16']
const DEVICE = 'nat64'

export interface EdgeMachineInput {
  readonly edgeId: string
  readonly roles: readonly EdgeRole[]
  /** Of the network. */
  readonly ipv4Cidr: string
  readonly ipv6Prefix: string
  /** The machine's own in the network. */
  readonly ipv4: string
  readonly ipv6: string
  /** Hardware address of its interface there. */
  readonly macAddress: string
  /** The resolvers that it asks for names; the root servers of the Internet when there are none. */
  readonly resolvers: readonly string[]
  /** One-line public keys of the users that may sign in. */
  readonly sshKeys: readonly string[]
  readonly members: readonly EdgeMember[]
}

export interface EdgeMachineParts {
  readonly sysctl: Record<string, string>
  readonly nftables: string
  readonly haproxy?: { readonly config: string }
  readonly nat64?: { readonly config: string }
  readonly dns64?: { readonly config: string }
  readonly bastion?: { readonly authorizedKeys: string[]; readonly hostKey?: string }
  readonly routes?: { readonly to: string; readonly device: string }[]
}

/** The programs of the machine for its roles. */
export function edgeMachineParts(input: EdgeMachineInput): EdgeMachineParts {
  const isNat = input.roles.includes('nat_gateway')
  return {
    sysctl: isNat
      ? { 'net.ipv4.ip_forward': '1', 'net.ipv6.conf.all.forwarding': '1', 'net.ipv6.conf.default.forwarding': '1' }
      : { 'net.ipv4.ip_forward': '0', 'net.ipv6.conf.all.forwarding': '0' },
    nftables: edgeRuleset(input),
    ...(isNat
      ? {
          nat64: { config: nat64Config(input) },
          dns64: { config: dns64Config(input) },
          routes: [INNER_PREFIX, innerPool(input.ipv4Cidr)].map((to) => ({ to, device: DEVICE })),
        }
      : {}),
    ...(input.roles.includes('bastion') ? { bastion: { authorizedKeys: input.sshKeys.toSorted() } } : {}),
    // Without anything to listen on, the proxy does not start.
    ...(input.roles.includes('load_balancer') && input.members.length > 0
      ? { haproxy: { config: proxyConfiguration(balancerOf(input), PROXY_PATHS) } }
      : {}),
  }
}

const PROXY_PATHS = {
  certificates: '@ROOT@/certificates',
  socket: '@RUN@/haproxy.sock',
  serverState: '@RUN@/haproxy.state',
}

/** The name of a member of the edge on its machine. */
export const memberId = (edgeId: string, name: string): string => derivedId(`${edgeId}/${name}`)

/** The services for the members: members with the same external port share one. */
export function balancerOf({
  edgeId,
  members,
}: Pick<EdgeMachineInput, 'edgeId' | 'members'>): LoadBalancerConfiguration {
  const ports = portsOf(members)
  return {
    frontends: ports.map((port) => ({
      name: `port-${port}`,
      port,
      mode: 'tcp',
      backend: `port-${port}`,
      certificateIds: [],
      allowedCidrs: [],
      inboundProxyProtocol: false,
      idleTimeoutSeconds: IDLE_TIMEOUT_SECONDS.default,
    })),
    backends: ports.map((port) => ({
      name: `port-${port}`,
      algorithm: 'round_robin',
      healthCheck: {
        type: 'tcp',
        path: '/',
        intervalSeconds: HEALTH_INTERVAL_SECONDS.default,
        timeoutSeconds: HEALTH_TIMEOUT_SECONDS.default,
        rise: HEALTH_COUNT.rise,
        fall: HEALTH_COUNT.fall,
        expectedStatuses: [],
      },
      proxyProtocol: 'none',
      members: members
        .filter(({ frontendPort }) => frontendPort === port)
        .map(({ name, address, port: own, weight, enabled }) => ({
          id: memberId(edgeId, name),
          name,
          address,
          port: own,
          weight,
          enabled,
        })),
    })),
  }
}

/** A range that the machine uses itself and that does not overlap the network. */
export function innerPool(ipv4Cidr: string): string {
  const network = parseNetwork(ipv4Cidr)
  const pool = INNER_POOLS.flatMap((text) => parseNetwork(text) ?? []).find(
    (one) => network !== undefined && !overlaps(one, network),
  )
  if (pool === undefined) throw new Error(`${ipv4Cidr} leaves no range for translation`)
  return formatNetwork(pool)
}

const lines = (...texts: readonly string[]): string => `${texts.join('\n')}\n`

const nat64Config = ({ ipv4Cidr }: EdgeMachineInput): string =>
  lines(
    `tun-device ${DEVICE}`,
    `ipv4-addr ${gatewayOf(innerPool(ipv4Cidr))}`,
    `ipv6-addr ${INNER_IPV6}`,
    `prefix ${INNER_PREFIX}`,
    `dynamic-pool ${innerPool(ipv4Cidr)}`,
    'data-dir @RUN@/tayga',
  )

/** Resolves names itself, or through the resolvers of the zone; answers its network only. */
const dns64Config = ({ ipv4, ipv6, ipv4Cidr, ipv6Prefix, resolvers }: EdgeMachineInput): string =>
  lines(
    'server:',
    '  module-config: "dns64 iterator"',
    `  dns64-prefix: ${NAT64_PREFIX}`,
    `  interface: ${ipv6}`,
    `  interface: ${ipv4}`,
    '  ip-freebind: yes',
    '  access-control: 0.0.0.0/0 refuse',
    '  access-control: ::/0 refuse',
    `  access-control: ${ipv4Cidr} allow`,
    `  access-control: ${ipv6Prefix} allow`,
    '  hide-identity: yes',
    '  hide-version: yes',
    '  chroot: ""',
    '  directory: "@RUN@"',
    '  use-syslog: no',
    ...(resolvers.length === 0
      ? []
      : ['forward-zone:', '  name: "."', ...resolvers.map((resolver) => `  forward-addr: ${resolver}`)]),
  )

/** Which connections are accepted, forwarded, and translated. */
export function edgeRuleset(input: EdgeMachineInput): string {
  const { roles, members } = input
  const isNat = roles.includes('nat_gateway')
  const ports = roles.includes('load_balancer') ? portsOf(members) : []
  return lines(
    'table inet svccloud {',
    '  chain arrival {',
    '    type filter hook prerouting priority raw; policy accept;',
    '    ip saddr 0.0.0.0 accept',
    '    ip6 saddr { ::, fe80::/10 } accept',
    // Nobody outside uses the network's addresses, and nobody in it uses others'.
    '    fib saddr . iif oif missing drop',
    '  }',
    ...CLOSED_INPUT,
    ...(roles.includes('bastion') ? ['    tcp dport 22 accept'] : []),
    ...(isNat
      ? [
          `    ip saddr ${input.ipv4Cidr} meta l4proto { tcp, udp } th dport 53 accept`,
          `    ip6 saddr ${input.ipv6Prefix} meta l4proto { tcp, udp } th dport 53 accept`,
        ]
      : []),
    ...(ports.length > 0 ? [`    tcp dport { ${ports.join(', ')} } accept`] : []),
    '  }',
    '  chain output {',
    '    type filter hook output priority filter; policy accept;',
    // Users of the bastion must not reach the machine's own metadata through it.
    '    meta skuid != 0 ip daddr 169.254.0.0/16 drop',
    '  }',
    '  chain forward {',
    '    type filter hook forward priority filter; policy drop;',
    ...(isNat ? forwardRules(input) : []),
    '  }',
    ...(isNat ? translationChains(input) : []),
    '}',
  )
}

const portsOf = (members: readonly EdgeMember[]): readonly number[] =>
  [...new Set(members.map(({ frontendPort }) => frontendPort))].sort((one, other) => one - other)

/** Out of the network, and back the answers. Link-local services, like the metadata of hosts, must not be reachable
 *  through the machine. */
const forwardRules = ({ ipv4Cidr, ipv6Prefix }: EdgeMachineInput): readonly string[] => [
  '    tcp flags syn tcp option maxseg size set rt mtu',
  '    ct state vmap { established : accept, related : accept, invalid : drop }',
  '    ip daddr { 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/3 } drop',
  `    ip saddr ${ipv4Cidr} ip daddr != ${ipv4Cidr} accept`,
  `    ip6 saddr ${ipv6Prefix} ip6 daddr ${INNER_PREFIX} oifname "${DEVICE}" accept`,
  `    iifname "${DEVICE}" ip saddr ${innerPool(ipv4Cidr)} ip daddr != ${ipv4Cidr} accept`,
]

/** IPv6 reaches the translating program under a separate prefix, and leaves it from its pool. */
const translationChains = ({ ipv4Cidr, ipv6Prefix }: EdgeMachineInput): readonly string[] => [
  '  chain inward {',
  '    type nat hook prerouting priority dstnat; policy accept;',
  `    ip6 saddr ${ipv6Prefix} dnat ip6 prefix to ip6 daddr map { ${NAT64_PREFIX} : ${INNER_PREFIX} }`,
  '  }',
  '  chain outward {',
  '    type nat hook postrouting priority srcnat; policy accept;',
  `    ip saddr { ${ipv4Cidr}, ${innerPool(ipv4Cidr)} } ip daddr != ${ipv4Cidr} oifname != "${DEVICE}" masquerade`,
  '  }',
]
