import fc from 'fast-check'
import { isIPv6 } from 'node:net'
import { describe, expect, test } from 'vitest'
import {
  canonicalAddress,
  canonicalCidr,
  formatAddress,
  formatNetwork,
  isPrivateAddress,
  isPrivateNetwork,
  overlaps,
  parseAddress,
  parseNetwork,
} from '../../../domain/network/addresses.ts'

describe('an address', () => {
  test.each([
    ['2001:db8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:DB8::0', '2001:db8::'],
    ['::', '::'],
    ['::1', '::1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:0:0:2:3:0:0:4', '1::2:3:0:0:4'],
    ['2001:db8:10:0:0:1:2:3', '2001:db8:10::1:2:3'],
    ['fe80:0:0:1:2:3:4:5', 'fe80::1:2:3:4:5'],
    ['1:2:3:4:5:6:0:0', '1:2:3:4:5:6::'],
    ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
    ['192.0.2.1', '192.0.2.1'],
    ['255.255.255.255', '255.255.255.255'],
    ['1:2:3:4:5:6::8', '1:2:3:4:5:6:0:8'],
    ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ])('%s is written %s', (text, canonical) => {
    const parsed = parseAddress(text)
    expect(parsed && formatAddress(parsed.family, parsed.value)).toBe(canonical)
  })

  test.each([
    '',
    '1.2.3',
    '1.2.3.256',
    '01.2.3.4',
    '1.2.3.4.5',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7::8',
    '12345::',
    'g::',
    '::1%eth0',
  ])('%s is none', (text) => {
    expect(parseAddress(text)).toBeUndefined()
  })

  test('of any value is read as it was written, and Node agrees that it is one', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }),
        fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }),
        (value, mask) => {
          const text = formatAddress('ipv6', value & mask)
          expect(parseAddress(text)).toEqual({ family: 'ipv6', value: value & mask })
          expect(isIPv6(text)).toBe(true)
        },
      ),
    )
  })
})

describe('a network', () => {
  test.each([
    ['192.0.2.0/24', true],
    ['192.0.2.1/24', false],
    ['2001:db8::/40', true],
    ['2001:db8::1/64', false],
    ['192.0.2.0', false],
    ['192.0.2.0/33', false],
    ['192.0.2.0/024', false],
    ['::/0', true],
  ])('%s: %s', (text, isNetwork) => {
    const network = parseNetwork(text)
    expect(network !== undefined).toBe(isNetwork)
    if (network !== undefined) expect(formatNetwork(network)).toBe(text)
  })

  test.each([
    ['192.0.2.0/24', '192.0.2.128/25', true],
    ['192.0.2.0/24', '192.0.3.0/24', false],
    ['0.0.0.0/0', '2001:db8::/32', false],
    ['2001:db8::/32', '2001:db8:ffff::/48', true],
  ])('%s overlaps %s: %s', (one, other, expected) => {
    const [first, second] = [parseNetwork(one), parseNetwork(other)]
    if (first === undefined || second === undefined) throw new Error('no network')
    expect([overlaps(first, second), overlaps(second, first)]).toEqual([expected, expected])
  })
})

test.each([
  ['fd00::1', true],
  ['fc00::', true],
  ['fbff:ffff::', false],
  ['2001:db8::1', false],
  ['10.1.2.3', true],
  ['172.31.0.1', true],
  ['172.32.0.1', false],
  ['203.0.113.1', false],
  ['100.64.0.1', true],
])('%s is private: %s', (address, expected) => {
  expect(isPrivateAddress(address)).toBe(expected)
})

test.each([
  ['10.0.0.0/8', true],
  ['192.168.0.0/16', true],
  ['192.168.0.0/15', false],
  ['172.0.0.0/8', false],
  ['fd12:3456::/48', true],
  ['f800::/6', false],
  ['nonsense', false],
])('all of %s is private: %s', (cidr, expected) => {
  expect(isPrivateNetwork(cidr)).toBe(expected)
})

test.each([
  ['2001:db8:70da:0000::/56', '2001:db8:70da::/56'],
  ['2001:DB8:0:0:0:0:0:0/32', '2001:db8::/32'],
  ['FE80::0001/064', 'fe80::1/64'],
  ['192.0.2.0/24', '192.0.2.0/24'],
  ['nonsense', 'nonsense'],
])('%s is written %s', (text, expected) => expect(canonicalCidr(text)).toBe(expected))

test('the texts of one address have one canonical text', () => {
  for (const text of ['FE80:0::1', 'fe80:0:0:0:0:0:0:1', 'fe80::0:1']) expect(canonicalAddress(text)).toBe('fe80::1')
  expect(canonicalAddress('gateway.example')).toBe('gateway.example')
})

test.each(['192.0.2.1/32', '2001:db8::1/128', '0.0.0.0/0', '::/0'])('%s is a network', (text) =>
  expect(parseNetwork(text)).toBeDefined(),
)
test.each(['192.0.2.1/33', '2001:db8::1/129', '10.0.0.0/8/8', '10.0.0.0/8/', '10.0.0.0', '10.0.0.0/08', '10.0.0.1/31'])(
  '%s is no network',
  (text) => expect(parseNetwork(text)).toBeUndefined(),
)
