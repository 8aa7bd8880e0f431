import { describe, expect, test } from 'vitest'
import { interfaceAddressFault, freeAddresses } from '../../../domain/network/interfaces.ts'

const network = { ipv4Cidr: '10.0.0.0/28', ipv6Prefix: 'fd12:3456:789a:1::/64' }

describe('a chosen address', () => {
  test.each<[string, Parameters<typeof interfaceAddressFault>[1], string | undefined]>([
    ['none', {}, undefined],
    ['the first of the hosts', { ipv4Address: '10.0.0.2' }, undefined],
    ['the last of the hosts', { ipv4Address: '10.0.0.14' }, undefined],
    ['that of the router', { ipv4Address: '10.0.0.1' }, 'ipv4Address'],
    ['that of broadcasts', { ipv4Address: '10.0.0.15' }, 'ipv4Address'],
    ['one of another network', { ipv4Address: '10.0.1.2' }, 'ipv4Address'],
    ['one of the other protocol', { ipv4Address: 'fd12:3456:789a:1::2' }, 'ipv4Address'],
    ['what is no address', { ipv4Address: 'web' }, 'ipv4Address'],
    ['an IPv6 address', { ipv6Address: 'FD12:3456:789a:1::ffff' }, undefined],
    ['the IPv6 address of the router', { ipv6Address: 'fd12:3456:789a:1::1' }, 'ipv6Address'],
    ['the network itself', { ipv6Address: 'fd12:3456:789a:1::' }, 'ipv6Address'],
    ['an IPv6 address of another network', { ipv6Address: 'fd12:3456:789a:2::2' }, 'ipv6Address'],
    ['an IPv4 address as IPv6', { ipv6Address: '10.0.0.2' }, 'ipv6Address'],
  ])('%s', (_what, chosen, field) => expect(interfaceAddressFault(network, chosen)?.field).toBe(field))
})

describe('a free address', () => {
  test('is the lowest, and that of IPv6 ends like it', () => {
    const first = { ipv4Address: '10.0.0.2', ipv6Address: 'fd12:3456:789a:1::2' }
    expect(freeAddresses(network, [])).toEqual(first)
    expect(freeAddresses(network, Object.values(first))).toEqual({
      ipv4Address: '10.0.0.3',
      ipv6Address: 'fd12:3456:789a:1::3',
    })
  })

  test('goes around what was chosen', () => {
    expect(freeAddresses(network, ['10.0.0.2', 'fd12:3456:789a:1::3', 'fd12:3456:789a:1::4'])).toEqual({
      ipv4Address: '10.0.0.3',
      ipv6Address: 'fd12:3456:789a:1::5',
    })
    const chosen = { ipv4Address: '10.0.0.9', ipv6Address: 'fd12:3456:789a:1::abcd' }
    expect(freeAddresses(network, [], chosen)).toEqual(chosen)
    expect(freeAddresses(network, [], { ipv4Address: '10.0.0.9' })?.ipv6Address).toBe('fd12:3456:789a:1::9')
  })

  test('is none when every host has one', () => {
    const all = Array.from({ length: 13 }, (_, index) => `10.0.0.${index + 2}`)
    expect(freeAddresses(network, all.slice(1))?.ipv4Address).toBe('10.0.0.2')
    expect(freeAddresses(network, all)).toBeUndefined()
  })
})
