/** Firewalls of servers: the stored shape in the Server, the public shape, and the routes. */
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
import { snakeCase } from '../kit/view.ts'
import { CidrText } from '../kit/fields.ts'

const StoredRule = z.strictObject({
  direction: z.enum(FIREWALL_DIRECTIONS).describe('in: traffic to the server; out: traffic from the server.'),
  action: z.enum(FIREWALL_ACTIONS).describe('Action for matching packets.'),
  family: z.enum(FIREWALL_FAMILIES).default('any').describe('Address family.'),
  protocol: z.enum(FIREWALL_PROTOCOLS).default('any').describe('Transport protocol; icmp means that of the family.'),
  portStart: z.int().min(1).max(PORT_MAXIMUM).optional().describe('First port; any port when absent.'),
  portEnd: z.int().min(1).max(PORT_MAXIMUM).optional().describe('Last port; the first port when absent.'),
  remoteCidrs: z
    .array(CidrText.min(1))
    .max(FIREWALL_CIDRS_PER_RULE_MAXIMUM)
    .default([])
    .describe('Networks that packets come from or go to; empty for any.'),
  comment: z.string().max(FIREWALL_COMMENT_CHARACTERS_MAXIMUM).default('').describe('For people.'),
})

export const StoredFirewall = z
  .strictObject({
    enabled: z.boolean().describe('Whether the firewall is active; all traffic is allowed while it is false.'),
    defaultInbound: z
      .enum(FIREWALL_ACTIONS)
      .default(NO_FIREWALL.defaultInbound)
      .describe('Action for packets to the server that match no rule.'),
    defaultOutbound: z
      .enum(FIREWALL_ACTIONS)
      .default(NO_FIREWALL.defaultOutbound)
      .describe('Action for packets from the server that match no rule.'),
    rules: z
      .array(StoredRule)
      .max(FIREWALL_RULES_MAXIMUM)
      .default([])
      .describe('Evaluated in order; the first matching rule decides.'),
  })
  .describe(
    'Allowed traffic on each interface of the server; all traffic when absent. The firewall is stateful. Always ' +
      `allowed: ${ALWAYS_ALLOWED.join(', ')}. A change starts an operation server.firewall.`,
  )

/** Progress of applying the firewall in the spec, in the status of its server. */
export const FirewallProgress = z.strictObject({
  generation: z.int().min(0).describe('Number of changes of the firewall.'),
  fingerprint: z.string().max(64).describe('Fingerprint of the firewall with this generation.'),
  appliedGeneration: z.int().min(0).describe('Generation that the host of the server applies.'),
  appliedAt: z.string().max(64).optional().describe('Time since when it is applied.'),
})
export type FirewallProgress = z.infer<typeof FirewallProgress>

const FirewallRuleView = z
  .strictObject({
    direction: z.enum(FIREWALL_DIRECTIONS).describe('in: traffic to the server; out: traffic from the server.'),
    action: z.enum(FIREWALL_ACTIONS).describe('Action for matching packets.'),
    family: z.enum(FIREWALL_FAMILIES).describe('Address family.'),
    protocol: z.enum(FIREWALL_PROTOCOLS).describe('Transport protocol; icmp means that of the family.'),
    port_start: z.int().nullable().describe('First port; any port when null. Only for tcp and udp.'),
    port_end: z.int().nullable().describe('Last port; equal to port_start for a single port.'),
    remote_cidrs: z.array(z.string()).describe('Networks that packets come from or go to; empty for any.'),
    comment: z.string().describe('For people.'),
  })
  .meta({ id: 'FirewallRule' })

export const FirewallView = z
  .strictObject({
    enabled: z.boolean().describe('All traffic is allowed while it is false.'),
    default_inbound: z.enum(FIREWALL_ACTIONS).describe('Action for packets to the server that match no rule.'),
    default_outbound: z.enum(FIREWALL_ACTIONS).describe('Action for packets from the server that match no rule.'),
    rules: z.array(FirewallRuleView).describe('Evaluated in order; the first matching rule decides.'),
    generation: z.int().describe('Increases with every changed firewall; 0 before the first.'),
    applied_generation: z.int().describe('Generation that the host of the server applies.'),
    applied_at: DateTime.nullable().describe('Time since when it is applied.'),
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
            port_start: Port.describe('First port; any port when omitted. Only for tcp and udp.'),
            port_end: Port.describe('Last port; port_start when omitted.'),
            remote_cidrs: z
              .array(CidrText)
              .default([])
              .describe(
                'Networks that packets come from or go to; empty for any. A single address is accepted as a network.',
              ),
            comment: Printable.default('').describe('For people.'),
          })
          .meta({ id: 'FirewallRuleInput' }),
      )
      .default([])
      .describe(`At most ${FIREWALL_RULES_MAXIMUM}, evaluated in order; the first matching rule decides.`),
  })
  .superRefine((input, context) => {
    if (input.rules.length > FIREWALL_RULES_MAXIMUM) return // a limit, which is refused with another status
    for (const { field, detail } of firewallFaults(toFirewall(input)))
      context.addIssue({ code: 'custom', message: detail, path: snakeCase(field).split('.') })
  })
  .meta({ id: 'FirewallInput' })
export type FirewallInput = z.infer<typeof FirewallInput>

/** In the stored form. */
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

/** A firewall in the form of a Server's spec. */
export const storedFirewall = ({ rules, ...firewall }: Firewall): z.infer<typeof StoredFirewall> => ({
  ...firewall,
  rules: rules.map(({ portStart, portEnd, remoteCidrs, ...rule }) => ({
    ...rule,
    ...defined({ portStart, portEnd }),
    remoteCidrs: [...remoteCidrs],
  })),
})

interface FirewallParts {
  readonly spec: { readonly firewall?: Firewall | undefined }
  readonly status?: { readonly firewall?: FirewallProgress | undefined } | undefined
}

/** The desired firewall of the server, with its generation. The generation increases as soon as a new firewall is
 *  written. */
export function firewallOf({ spec, status }: FirewallParts): {
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

export function toFirewallView(server: FirewallParts): FirewallView {
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

const firewalls = routesUnder({ path: '/v1/servers' })

export const getServerFirewall = firewalls.get('get_server_firewall', '/{id}/firewall', {
  summary: 'Get the firewall of a server',
  description:
    'applied_generation identifies the firewall that the host of the server currently applies. It is the newest ' +
    'one when it equals generation.',
  answers: { 200: z.strictObject({ firewall: FirewallView }) },
})

export const setServerFirewall = firewalls.put('set_server_firewall', '/{id}/firewall', {
  summary: 'Replace the firewall of a server',
  description:
    'Replaces the firewall on the public interface and every private one. Rules are evaluated in order; the first ' +
    'matching rule decides. The firewall is stateful and also applies to open connections: those that the new ' +
    `rules forbid end within seconds. Always allowed: ${ALWAYS_ALLOWED.join(', ')}.`,
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
