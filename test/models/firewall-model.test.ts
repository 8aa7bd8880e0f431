import { describe, expect, test } from 'vitest'
import { type Firewall, NO_FIREWALL } from '../../domain/server/firewall.ts'
import { type Flow, judge } from './firewall-model.ts'

const rule = (changes: Partial<Firewall['rules'][number]>): Firewall['rules'][number] => ({
  direction: 'in',
  action: 'accept',
  family: 'any',
  protocol: 'any',
  remoteCidrs: [],
  comment: '',
  ...changes,
})
const firewall = (...rules: readonly Firewall['rules'][number][]): Firewall => ({
  ...NO_FIREWALL,
  enabled: true,
  rules,
})
const flow = (changes: Partial<Flow> = {}): Flow => ({
  direction: 'in',
  protocol: 'tcp',
  remote: '192.0.2.1',
  port: 22,
  ...changes,
})

describe('a flow', () => {
  test('passes a firewall that is off', () => expect(judge(NO_FIREWALL, flow())).toBe('accept'))

  test.each([
    ['in', 'drop'],
    ['out', 'accept'],
  ] as const)('%s is under the default of its direction', (direction, action) => {
    expect(
      judge(firewall(rule({ direction: direction === 'in' ? 'out' : 'in', action: 'drop' })), flow({ direction })),
    ).toBe(action)
  })

  test('is judged by the first rule that fits', () => {
    expect(judge(firewall(rule({}), rule({ action: 'drop' })), flow())).toBe('accept')
    expect(judge(firewall(rule({ action: 'drop' }), rule({})), flow())).toBe('drop')
  })

  test.each<[string, Partial<Firewall['rules'][number]>, Partial<Flow>, boolean]>([
    ['its family', { family: 'ipv4' }, {}, true],
    ['the other family', { family: 'ipv6' }, {}, false],
    ['its protocol', { protocol: 'tcp' }, {}, true],
    ['another protocol', { protocol: 'udp' }, {}, false],
    ['the first port', { protocol: 'tcp', portStart: 22, portEnd: 30 }, {}, true],
    ['the last port', { protocol: 'tcp', portStart: 10, portEnd: 22 }, {}, true],
    ['one port', { protocol: 'tcp', portStart: 22 }, {}, true],
    ['ports before', { protocol: 'tcp', portStart: 10, portEnd: 21 }, {}, false],
    ['ports after', { protocol: 'tcp', portStart: 23, portEnd: 30 }, {}, false],
    ['its network', { remoteCidrs: ['198.51.100.0/24', '192.0.2.0/24'] }, {}, true],
    ['another network', { remoteCidrs: ['198.51.100.0/24'] }, {}, false],
    ['a network of the other family', { remoteCidrs: ['::/0'] }, {}, false],
    ['its network of IPv6', { remoteCidrs: ['2001:db8::/32'] }, { remote: '2001:db8::1' }, true],
    ['icmp', { protocol: 'icmp' }, { protocol: 'icmp', port: undefined }, true],
  ])('fits a rule for %s or not', (_what, changes, of, fits) =>
    expect(judge(firewall(rule(changes)), flow(of))).toBe(fits ? 'accept' : 'drop'),
  )
})
