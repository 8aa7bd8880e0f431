import { describe, expect, test } from 'vitest'
import { firewallRows } from '../../../../controllers/network/ovn/firewall.ts'
import { type Firewall, NO_FIREWALL } from '../../../../domain/server/firewall.ts'

const rule = (changes: Partial<Firewall['rules'][number]>): Firewall['rules'][number] => ({
  direction: 'in',
  action: 'accept',
  family: 'any',
  protocol: 'any',
  remoteCidrs: [],
  comment: '',
  ...changes,
})
const rowsOf = (...rules: readonly Firewall['rules'][number][]) =>
  firewallRows('a-b', { ...NO_FIREWALL, enabled: true, rules, ports: ['a-b', 'i1'] })
const first = (rule: Firewall['rules'][number]) =>
  rowsOf(rule).find(({ key }) => key === `firewall_a_b-${rule.direction}-rule-0`)?.columns

describe('the firewall of a server in OVN', () => {
  test('is not there when it is off', () => expect(firewallRows('a', { ...NO_FIREWALL, ports: ['a'] })).toEqual([]))

  test('is for all ports of the server', () =>
    expect(rowsOf()[0]?.columns).toEqual({
      name: 'firewall_a_b',
      ports: {
        references: ['a-b', 'i1'].map((key) => ({ table: 'Logical_Switch_Port', key })),
      },
    }))

  test.each<[string, Partial<Firewall['rules'][number]>, string]>([
    ['anything', {}, '1'],
    ['a family', { family: 'ipv6' }, 'ip6'],
    ['a protocol', { protocol: 'icmp' }, '((icmp) || (ip6 && ip.later_frag))'],
    [
      'ports, and parts of datagrams, which have none',
      { protocol: 'tcp', portStart: 80, portEnd: 90 },
      '((tcp && tcp.dst >= 80 && tcp.dst <= 90) || (tcp && ip.later_frag) || (ip6 && ip.later_frag))',
    ],
    ['networks', { remoteCidrs: ['10.0.0.0/8', '192.0.2.1/32'] }, '(ip4.src == {10.0.0.0/8, 192.0.2.1/32})'],
    [
      'networks of both families',
      { remoteCidrs: ['10.0.0.0/8', 'fd00::/8'] },
      '(ip4.src == {10.0.0.0/8} || ip6.src == {fd00::/8})',
    ],
    ['everybody of a family', { remoteCidrs: ['10.0.0.0/8', '0.0.0.0/0'] }, '(ip4)'],
  ])('matches %s', (_what, changes, match) =>
    expect(first(rule(changes))).toMatchObject({
      direction: 'to-lport',
      action: 'allow-related',
      match: `outport == @firewall_a_b && ip && (${match})`,
    }),
  )

  test('drops ports, and no parts of datagrams that go to others', () =>
    expect(first(rule({ action: 'drop', protocol: 'udp', portStart: 53 }))?.['match']).toBe(
      'outport == @firewall_a_b && ip && (udp && udp.dst >= 53 && udp.dst <= 53)',
    ))

  test('looks at where packets go when they leave', () =>
    expect(first(rule({ direction: 'out', action: 'drop', remoteCidrs: ['10.0.0.0/8'] }))).toEqual({
      direction: 'from-lport',
      action: 'drop',
      match: 'inport == @firewall_a_b && ip && ((ip4.dst == {10.0.0.0/8}))',
      priority: 20_000,
    }))

  test('decides by the order of rules, before the defaults and after what always passes', () => {
    const incoming = rowsOf(rule({}), rule({ action: 'drop' }), rule({})).filter(
      ({ columns: { direction } }) => direction === 'to-lport',
    )
    const priorities = incoming.map(({ columns: { priority } }) => Number(priority))
    expect(priorities).toEqual(priorities.toSorted((one, other) => other - one))
    expect(new Set(priorities).size).toBe(5)
  })

  test('has one row for consecutive rules with the same action, for any rules of the other direction', () => {
    const port = (portStart: number, changes: Partial<Firewall['rules'][number]> = {}) =>
      rule({ protocol: 'tcp', portStart, ...changes })
    const rows = rowsOf(port(1), port(9, { direction: 'out' }), port(2), port(3, { action: 'drop' }), port(4))
    const whole = (number: number) => `tcp && tcp.dst >= ${number} && tcp.dst <= ${number}`
    const parts = (number: number) => `((${whole(number)}) || (tcp && ip.later_frag) || (ip6 && ip.later_frag))`
    const rules = rows.filter(({ key }) => key.includes('-rule-'))
    expect(rules.map(({ key, columns: { action, match } }) => [key, action, match])).toEqual([
      ['firewall_a_b-in-rule-0', 'allow-related', `outport == @firewall_a_b && ip && ((${parts(1)}) || (${parts(2)}))`],
      ['firewall_a_b-in-rule-1', 'drop', `outport == @firewall_a_b && ip && (${whole(3)})`],
      ['firewall_a_b-in-rule-2', 'allow-related', `outport == @firewall_a_b && ip && (${parts(4)})`],
      ['firewall_a_b-out-rule-0', 'allow-related', `inport == @firewall_a_b && ip && (${parts(9)})`],
    ])
  })

  test('has few rows of many rules that do the same', () => {
    const many = Array.from({ length: 100 }, (_, index) => rule({ protocol: 'udp', portStart: index + 1 }))
    expect(rowsOf(...many).length).toBe(6)
  })
})
