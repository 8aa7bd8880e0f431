/** Firewalls and flows of tenant `a`, as a seed draws them: rules that fit its guests, and some that fit nobody. */
import fc from 'fast-check'
import {
  canonicalFirewall,
  type Firewall,
  FIREWALL_ACTIONS,
  FIREWALL_DIRECTIONS,
  FIREWALL_FAMILIES,
  FIREWALL_PROTOCOLS,
  firewallFaults,
  type FirewallRule,
} from '../../../../domain/server/firewall.ts'
import { GUESTS, ipv6Of } from './tenants.ts'

export const FILTERED = ['a1', 'a2', 'a3'] as const
export type Filtered = (typeof FILTERED)[number]

/** Guests answer at the first two; that nobody is there they say for the others. */
export const PORTS = [1000, 2000, 3000, 4000] as const
const SERVED = 2
/** Passes whatever else is drawn, so that tests know when what they sent before has passed or never will. */
export const CONTROL_PORT = 9
const RULES_MAXIMUM = 19
/** In three parts where the wire carries 1400 bytes. */
const LARGE_BYTES = 3_000
const SMALL_BYTES = 10

const REMOTES = [
  '10.0.0.0/24',
  '10.0.1.0/24',
  '10.0.0.3/32',
  '10.0.1.2/32',
  '10.0.0.0/8',
  '0.0.0.0/0',
  '192.0.2.0/24',
  'fd00:a::/64',
  'fd00:c::/64',
  'fd00:a::3/128',
  'fd00::/8',
  '::/0',
  '2001:db8::/32',
]

const portsOfRule = fc.oneof(
  { weight: 2, arbitrary: fc.constant({}) },
  { weight: 3, arbitrary: fc.constantFrom(...PORTS).map((portStart) => ({ portStart })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom([1, 1000], [1001, 2000], [2000, 3999], [3000, 65_535]).map(([portStart, portEnd]) => ({
      portStart,
      portEnd,
    })),
  },
)

const rule: fc.Arbitrary<FirewallRule> = fc
  .record({
    direction: fc.constantFrom(...FIREWALL_DIRECTIONS),
    action: fc.constantFrom(...FIREWALL_ACTIONS),
    family: fc.constantFrom(...FIREWALL_FAMILIES, 'any' as const),
    protocol: fc.constantFrom(...FIREWALL_PROTOCOLS),
    remoteCidrs: fc.oneof(fc.constant([]), fc.subarray(REMOTES, { minLength: 1, maxLength: 3 })),
    ports: portsOfRule,
  })
  .map(({ ports, ...rest }) => ({ ...rest, ...ports, comment: '' }))
  .filter((drawn) => firewallFaults({ rules: [drawn] }).length === 0)

const CONTROLS: readonly FirewallRule[] = FIREWALL_DIRECTIONS.map((direction) => ({
  direction,
  action: 'accept',
  family: 'any',
  protocol: 'udp',
  remoteCidrs: [],
  comment: '',
  portStart: CONTROL_PORT,
}))

export const firewalls: fc.Arbitrary<Firewall> = fc
  .record({
    enabled: fc.oneof({ weight: 9, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
    defaultInbound: fc.constantFrom(...FIREWALL_ACTIONS),
    // Both ends of a flow decide: with more that is dropped little would pass.
    defaultOutbound: fc.constantFrom('accept' as const, 'accept' as const, 'drop' as const),
    rules: fc.array(rule, { maxLength: RULES_MAXIMUM - CONTROLS.length }),
  })
  .map((drawn) => canonicalFirewall({ ...drawn, rules: [...CONTROLS, ...drawn.rules] }))

export interface DrawnFlow {
  readonly from: Filtered
  readonly to: Filtered
  readonly family: 'ipv4' | 'ipv6'
  readonly protocol: 'tcp' | 'udp' | 'icmp'
  readonly port?: number
  /** Of what a datagram carries. */
  readonly size: number
}

export const flows: fc.Arbitrary<DrawnFlow> = fc
  .record({
    ends: fc.shuffledSubarray([...FILTERED], { minLength: 2, maxLength: 2 }),
    family: fc.constantFrom('ipv4' as const, 'ipv6' as const),
    kind: fc.constantFrom('tcp', 'udp', 'icmp', 'large'),
    port: fc.nat({ max: PORTS.length - 1 }),
  })
  .map(({ ends: [from = 'a1', to = 'a2'], family, kind, port }) => ({
    from,
    to,
    family,
    protocol: kind === 'large' ? 'udp' : (kind as DrawnFlow['protocol']), // the others are
    ...(kind === 'icmp' ? {} : { port: PORTS[kind === 'large' ? port % SERVED : port] ?? PORTS[0] }),
    size: kind === 'large' ? LARGE_BYTES : SMALL_BYTES,
  }))

export const addressOf = (guest: Filtered, family: DrawnFlow['family']): string =>
  family === 'ipv4' ? GUESTS[guest].ipv4 : ipv6Of(guest)
