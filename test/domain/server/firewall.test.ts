import { describe, expect, test } from 'vitest'
import {
  canonicalFirewall,
  type Firewall,
  FIREWALL_CIDRS_MAXIMUM,
  FIREWALL_CIDRS_PER_RULE_MAXIMUM,
  FIREWALL_COMMENT_CHARACTERS_MAXIMUM,
  FIREWALL_RULES_MAXIMUM,
  firewallFaults,
  type FirewallRule,
  NO_FIREWALL,
} from '../../../domain/server/firewall.ts'

const rule: FirewallRule = {
  direction: 'in',
  action: 'accept',
  family: 'any',
  protocol: 'any',
  remoteCidrs: [],
  comment: '',
}
const firewall = (...rules: readonly FirewallRule[]): Firewall => ({ ...NO_FIREWALL, enabled: true, rules })
const cidrs = (count: number) => Array.from({ length: count }, (_, index) => `10.0.${index >> 8}.${index & 255}/32`)

describe('a rule', () => {
  test.each<[string, Partial<FirewallRule>, readonly string[]]>([
    ['for everything', {}, []],
    ['for one port', { protocol: 'tcp', portStart: 22 }, []],
    ['for one port, said twice', { protocol: 'tcp', portStart: 22, portEnd: 22 }, []],
    ['for every port that there is', { protocol: 'udp', portStart: 1, portEnd: 65_535 }, []],
    ['for ICMP', { protocol: 'icmp' }, []],
    ['with ports of ICMP', { protocol: 'icmp', portStart: 8 }, ['rules.0.portStart']],
    ['with ports of any protocol', { protocol: 'any', portStart: 1, portEnd: 2 }, ['rules.0.portStart']],
    ['with a last port of any protocol', { protocol: 'any', portEnd: 2 }, ['rules.0.portEnd']],
    ['without a first port', { protocol: 'tcp', portEnd: 22 }, ['rules.0.portStart']],
    ['whose ports go backwards', { protocol: 'tcp', portStart: 23, portEnd: 22 }, ['rules.0.portEnd']],
    ['of port 0', { protocol: 'tcp', portStart: 0, portEnd: 22 }, ['rules.0.portStart']],
    ['beyond the last port', { protocol: 'tcp', portStart: 1, portEnd: 65_536 }, ['rules.0.portEnd']],
    ['of no whole port', { protocol: 'tcp', portStart: 1.5, portEnd: 2.5 }, ['rules.0.portStart', 'rules.0.portEnd']],
    ['for networks of both families', { remoteCidrs: ['192.0.2.0/24', '2001:db8::/32'] }, []],
    ['for all of a family', { remoteCidrs: ['0.0.0.0/0', '::/0'] }, []],
    ['for an address', { remoteCidrs: ['192.0.2.1', '2001:db8::1'] }, []],
    [
      'for what is no network',
      { remoteCidrs: ['web', '192.0.2.0/33', ''] },
      [0, 1, 2].map((n) => `rules.0.remoteCidrs.${n}`),
    ],
    ['with bits beyond the prefix', { remoteCidrs: ['192.0.2.1/24'] }, ['rules.0.remoteCidrs.0']],
    ['for IPv6 from IPv6', { family: 'ipv6', remoteCidrs: ['2001:db8::/32'] }, []],
    ['for IPv6 from IPv4', { family: 'ipv6', remoteCidrs: ['::/0', '0.0.0.0/0'] }, ['rules.0.remoteCidrs.1']],
    ['for IPv4 from IPv6', { family: 'ipv4', remoteCidrs: ['2001:db8::1'] }, ['rules.0.remoteCidrs.0']],
    ['with as many networks as may be', { remoteCidrs: cidrs(FIREWALL_CIDRS_PER_RULE_MAXIMUM) }, []],
    ['with one too many', { remoteCidrs: cidrs(FIREWALL_CIDRS_PER_RULE_MAXIMUM + 1) }, ['rules.0.remoteCidrs']],
    ['with a long comment', { comment: '\u{1F525}'.repeat(FIREWALL_COMMENT_CHARACTERS_MAXIMUM) }, []],
    ['with one too long', { comment: 'x'.repeat(FIREWALL_COMMENT_CHARACTERS_MAXIMUM + 1) }, ['rules.0.comment']],
  ])('%s', (_what, part, fields) =>
    expect(firewallFaults(firewall({ ...rule, ...part })).map(({ field }) => field)).toEqual(fields),
  )

  test.each<[Partial<FirewallRule>, string]>([
    [{ family: 'ipv4', remoteCidrs: ['::/0'] }, 'must be an IPv4 network, which the rule is for'],
    [{ protocol: 'tcp', portStart: 23, portEnd: 22 }, 'must be 23 or higher: it is the last port'],
    [{ protocol: 'icmp', portStart: 8 }, 'is for rules of protocol tcp or udp only'],
  ])('is refused in words: %o', (part, detail) =>
    expect(firewallFaults(firewall({ ...rule, ...part }))[0]?.detail).toBe(detail),
  )
})

describe('a firewall', () => {
  test.each<[string, Firewall, readonly string[]]>([
    ['that nobody made', NO_FIREWALL, []],
    ['with as many rules as may be', firewall(...Array.from({ length: FIREWALL_RULES_MAXIMUM }, () => rule)), []],
    ['with one too many', firewall(...Array.from({ length: FIREWALL_RULES_MAXIMUM + 1 }, () => rule)), ['rules']],
    ['with as many networks as may be', firewall(...networks(FIREWALL_CIDRS_MAXIMUM)), []],
    ['with one network too many', firewall(...networks(FIREWALL_CIDRS_MAXIMUM), ...networks(1)), ['rules']],
    [
      'whose second rule is at fault',
      firewall(rule, { ...rule, protocol: 'icmp', portStart: 8 }),
      ['rules.1.portStart'],
    ],
  ])('%s', (_what, input, fields) => expect(firewallFaults(input).map(({ field }) => field)).toEqual(fields))

  test('is kept in one form', () => {
    const given = firewall(
      { ...rule, protocol: 'tcp', portStart: 22, remoteCidrs: ['2001:DB8:0::/32', '192.0.2.1', '192.0.2.1/32'] },
      { ...rule, protocol: 'udp', portStart: 1, portEnd: 9, comment: 'Übung' },
    )
    const kept = canonicalFirewall(given)
    expect(kept).toEqual({
      ...given,
      rules: [
        { ...rule, protocol: 'tcp', portStart: 22, portEnd: 22, remoteCidrs: ['2001:db8::/32', '192.0.2.1/32'] },
        { ...rule, protocol: 'udp', portStart: 1, portEnd: 9, comment: 'Übung' },
      ],
    })
    expect(canonicalFirewall(kept)).toEqual(kept)
  })
})

/** So many networks, as many to a rule as one may have. */
function networks(count: number): readonly FirewallRule[] {
  const rules = Math.ceil(count / FIREWALL_CIDRS_PER_RULE_MAXIMUM)
  const all = cidrs(count)
  return Array.from({ length: rules }, (_, index) => ({
    ...rule,
    remoteCidrs: all.slice(index * FIREWALL_CIDRS_PER_RULE_MAXIMUM, (index + 1) * FIREWALL_CIDRS_PER_RULE_MAXIMUM),
  }))
}
