/** Firewalls of servers: as they are stored in the Server, as the API shows them, and their routes. */
import { z } from 'zod'
import { defined } from '../../domain/defined.ts'
import {
  ALWAYS_ALLOWED,
  canonicalFirewall,
  type Firewall,
  FIREWALL_ACTIONS,
  FIREWALL_CIDRS_PER_RULE_MAXIMUM,
  FIREWALL_COMMENT_CHARACTERS_MAXIMUM,
  FIREWALL_DIRECTIONS,
  FIREWALL_FAMILIES,
  FIREWALL_PROTOCOLS,
  FIREWALL_RULES_MAXIMUM,
  firewallFaults,
  firewallFingerprint,
  type FirewallRule,
  NO_FIREWALL,
  PORT_MAXIMUM,
} from '../../domain/server/firewall.ts'
import { OperationView } from '../operation/index.ts'
import { DateTime, Printable } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const CIDR_LENGTH_MAXIMUM = 49

const StoredRule = z.strictObject({
  direction: z.enum(FIREWALL_DIRECTIONS).describe('Whether it is about what the server gets or what it sends.'),
  action: z.enum(FIREWALL_ACTIONS).describe('What becomes of a packet that it fits.'),
  family: z.enum(FIREWALL_FAMILIES).default('any').describe('Which protocol the addresses are of.'),
  protocol: z.enum(FIREWALL_PROTOCOLS).default('any').describe('What is transported; icmp is that of the family.'),
  portStart: z.int().min(1).max(PORT_MAXIMUM).optional().describe('First port; every one when absent.'),
  portEnd: z.int().min(1).max(PORT_MAXIMUM).optional().describe('Last port; the first one when absent.'),
  remoteCidrs: z
    .array(z.string().min(1).max(CIDR_LENGTH_MAXIMUM))
    .max(FIREWALL_CIDRS_PER_RULE_MAXIMUM)
    .default([])
    .describe('Where packets come from or go to; anywhere when empty.'),
  comment: z.string().max(FIREWALL_COMMENT_CHARACTERS_MAXIMUM).default('').describe('For people.'),
})

export const StoredFirewall = z
  .strictObject({
    enabled: z.boolean().describe('Whether any of it holds; everything passes while it is false.'),
    defaultInbound: z
      .enum(FIREWALL_ACTIONS)
      .default(NO_FIREWALL.defaultInbound)
      .describe('What becomes of packets to the server that no rule fits.'),
    defaultOutbound: z
      .enum(FIREWALL_ACTIONS)
      .default(NO_FIREWALL.defaultOutbound)
      .describe('What becomes of packets of the server that no rule fits.'),
    rules: z
      .array(StoredRule)
      .max(FIREWALL_RULES_MAXIMUM)
      .default([])
      .describe('Tried in their order; the first that fits decides.'),
  })
  .describe(
    'What passes between the server and others, on each of its interfaces; everything when absent. It is stateful. ' +
      `Always allowed: ${ALWAYS_ALLOWED.join(', ')}. A change is an operation server.firewall.`,
  )

/** How far the firewall of the spec is applied, in the status of its server. */
export const FirewallProgress = z.strictObject({
  generation: z.int().min(0).describe('How often the firewall became another one.'),
  fingerprint: z.string().max(64).describe('Of the firewall that has this generation.'),
  appliedGeneration: z.int().min(0).describe('The one that the host of the server filters by.'),
  appliedAt: z.string().max(64).optional().describe('Since when it does.'),
})
export type FirewallProgress = z.infer<typeof FirewallProgress>

const FirewallRuleView = z
  .strictObject({
    direction: z.enum(FIREWALL_DIRECTIONS).describe('in: what the server gets, out: what it sends.'),
    action: z.enum(FIREWALL_ACTIONS).describe('What becomes of a packet that it fits.'),
    family: z.enum(FIREWALL_FAMILIES).describe('Which protocol the addresses are of.'),
    protocol: z.enum(FIREWALL_PROTOCOLS).describe('What is transported; icmp is that of the family.'),
    port_start: z.int().nullable().describe('First port; every port when null. Of tcp and udp only.'),
    port_end: z.int().nullable().describe('Last port; as port_start for a single one.'),
    remote_cidrs: z.array(z.string()).describe('Where packets come from or go to; anywhere when empty.'),
    comment: z.string().describe('For people.'),
  })
  .meta({ id: 'FirewallRule' })

export const FirewallView = z
  .strictObject({
    enabled: z.boolean().describe('Everything passes while it is false.'),
    default_inbound: z.enum(FIREWALL_ACTIONS).describe('For packets to the server that no rule fits.'),
    default_outbound: z.enum(FIREWALL_ACTIONS).describe('For packets of the server that no rule fits.'),
    rules: z.array(FirewallRuleView).describe('Tried in their order; the first that fits decides.'),
    generation: z.int().describe('Rises with every firewall that is another one; 0 until there was one.'),
    applied_generation: z.int().describe('The generation that the host of the server filters by.'),
    applied_at: DateTime.nullable().describe('Since when it does.'),
  })
  .meta({ id: 'Firewall' })
export type FirewallView = z.infer<typeof FirewallView>

const Port = z.int().min(1).max(PORT_MAXIMUM).nullish()

export const FirewallInput = z
  .strictObject({
    enabled: z.boolean(),
    default_inbound: FirewallView.shape.default_inbound.default(NO_FIREWALL.defaultInbound),
    default_outbound: FirewallView.shape.default_outbound.default(NO_FIREWALL.defaultOutbound),
    rules: z
      .array(
        z
          .strictObject({
            direction: FirewallRuleView.shape.direction,
            action: FirewallRuleView.shape.action,
            family: FirewallRuleView.shape.family.default('any'),
            protocol: FirewallRuleView.shape.protocol.default('any'),
            port_start: Port.describe('First port; every port when left out. For tcp and udp only.'),
            port_end: Port.describe('Last port; that of port_start when left out.'),
            remote_cidrs: z
              .array(z.string().max(CIDR_LENGTH_MAXIMUM))
              .default([])
              .describe(
                'Where packets come from or go to; anywhere when empty. An address is a network with one address.',
              ),
            comment: Printable.default('').describe('For people.'),
          })
          .meta({ id: 'FirewallRuleInput' }),
      )
      .default([])
      .describe(`At most ${FIREWALL_RULES_MAXIMUM}, tried in their order; the first that fits decides.`),
  })
  .superRefine((input, context) => {
    if (input.rules.length > FIREWALL_RULES_MAXIMUM) return // a limit, which is another answer
    for (const { field, detail } of firewallFaults(toFirewall(input)))
      context.addIssue({ code: 'custom', message: detail, path: fieldOfInput(field).split('.') })
  })
  .meta({ id: 'FirewallInput' })
export type FirewallInput = z.infer<typeof FirewallInput>

/** In the words of the API. */
const fieldOfInput = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** As it is stored. */
export const toFirewall = (input: {
  readonly enabled: boolean
  readonly default_inbound: Firewall['defaultInbound']
  readonly default_outbound: Firewall['defaultOutbound']
  readonly rules: readonly {
    readonly direction: FirewallRule['direction']
    readonly action: FirewallRule['action']
    readonly family: FirewallRule['family']
    readonly protocol: FirewallRule['protocol']
    readonly port_start?: number | null | undefined
    readonly port_end?: number | null | undefined
    readonly remote_cidrs: readonly string[]
    readonly comment: string
  }[]
}): Firewall =>
  canonicalFirewall({
    enabled: input.enabled,
    defaultInbound: input.default_inbound,
    defaultOutbound: input.default_outbound,
    rules: input.rules.map(({ port_start, port_end, remote_cidrs, ...rule }) => ({
      ...rule,
      ...(port_start == null ? {} : { portStart: port_start }),
      ...(port_end == null ? {} : { portEnd: port_end }),
      remoteCidrs: remote_cidrs,
    })),
  })

/** A firewall as the spec of a Server has it. */
export const storedFirewall = ({ rules, ...firewall }: Firewall): z.infer<typeof StoredFirewall> => ({
  ...firewall,
  rules: rules.map(({ portStart, portEnd, remoteCidrs, ...rule }) => ({
    ...rule,
    ...defined({ portStart, portEnd }),
    remoteCidrs: [...remoteCidrs],
  })),
})

interface Filtered {
  readonly spec: { readonly firewall?: Firewall | undefined }
  readonly status?: { readonly firewall?: FirewallProgress | undefined } | undefined
}

/** What the server shall filter by, with the number that tells it from those before. It counts as a new one as soon as
 *  it is written. */
export function firewallOf({ spec, status }: Filtered): {
  readonly firewall: Firewall
  readonly generation: number
  readonly fingerprint: string
} {
  const firewall = canonicalFirewall(spec.firewall ?? NO_FIREWALL)
  const fingerprint = firewallFingerprint(firewall)
  const known = status?.firewall ?? { generation: 0, fingerprint: firewallFingerprint(NO_FIREWALL) }
  return {
    firewall,
    fingerprint,
    generation: known.fingerprint === fingerprint ? known.generation : known.generation + 1,
  }
}

export function toFirewallView(server: Filtered): FirewallView {
  const { firewall, generation } = firewallOf(server)
  const { appliedGeneration = 0, appliedAt = null } = server.status?.firewall ?? {}
  return {
    enabled: firewall.enabled,
    default_inbound: firewall.defaultInbound,
    default_outbound: firewall.defaultOutbound,
    rules: firewall.rules.map(({ portStart = null, portEnd = null, remoteCidrs, ...rule }) => ({
      ...rule,
      port_start: portStart,
      port_end: portEnd,
      remote_cidrs: [...remoteCidrs],
    })),
    generation,
    applied_generation: appliedGeneration,
    applied_at: appliedAt,
  }
}

const firewalls = routesUnder({ path: '/v1/servers', area: 'Server firewalls' })

export const getServerFirewall = firewalls.get('get_server_firewall', '/{id}/firewall', {
  summary: 'Read the firewall of a server',
  description:
    'applied_generation says which firewall the host of the server filters by now: the newest one when it equals ' +
    'generation.',
  answers: { 200: z.strictObject({ firewall: FirewallView }) },
})

export const setServerFirewall = firewalls.put('set_server_firewall', '/{id}/firewall', {
  summary: 'Replace the firewall of a server',
  description:
    'As a whole, on the public interface and every private one. Rules are tried in their order; the first that fits ' +
    'a packet decides. It is stateful, and holds for connections that are open too: what the new rules would not ' +
    `allow ends within seconds. Always allowed: ${ALWAYS_ALLOWED.join(', ')}.`,
  starts: ['server.firewall'],
  body: FirewallInput,
  example: {
    enabled: true,
    default_inbound: 'drop',
    rules: [
      { direction: 'in', action: 'accept', protocol: 'tcp', port_start: 22, remote_cidrs: ['192.0.2.0/24'] },
      { direction: 'in', action: 'accept', protocol: 'tcp', port_start: 443, comment: 'the web' },
    ],
  },
  answers: { 202: z.strictObject({ firewall: FirewallView, operation: OperationView }) },
  refuses: [400, 404, 409, 422],
})
