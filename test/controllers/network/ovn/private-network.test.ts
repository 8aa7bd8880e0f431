import { expect, test } from 'vitest'
import { type NetworkFacts, networkRows } from '../../../../controllers/network/ovn/private-network.ts'

const FACTS: NetworkFacts = {
  zone: 'z1',
  id: 'n1',
  ipv4Cidr: '10.0.0.0/24',
  ipv6Prefix: 'fd00:1::/64',
  dnsServers: [],
  dhcpEnabled: true,
}
const optionsOf = (facts: NetworkFacts) =>
  networkRows(facts).find(({ table, key }) => table === 'DHCP_Options' && key.endsWith('-ipv4'))?.columns['options']

const namesOf = (facts: NetworkFacts) =>
  networkRows(facts)
    .filter(({ table }) => table === 'DHCP_Options')
    .map(({ columns: { options } }) => (options as Readonly<Record<string, string>>)['dns_server'])

test('guests ask exactly the servers that the customer names, and the network itself only where he names none', () => {
  const gateway = { ipv4: '10.0.0.9', ipv6: 'fd00:1::9' }
  expect(namesOf(FACTS)).toEqual(['{10.0.0.1}', '{fd00:1::1}'])
  expect(namesOf({ ...FACTS, gateway })).toEqual(['{10.0.0.9}', '{fd00:1::9}'])
  const dnsServers = ['192.0.2.53', '2001:db8::53', '192.0.2.54']
  expect(namesOf({ ...FACTS, dnsServers })).toEqual(['{192.0.2.53, 192.0.2.54}', '{2001:db8::53}'])
  expect(namesOf({ ...FACTS, dnsServers, gateway })).toEqual(['{192.0.2.53, 192.0.2.54}', '{2001:db8::53}'])
  expect(namesOf({ ...FACTS, dnsServers: ['192.0.2.53'] })).toEqual(['{192.0.2.53}', undefined])
  expect(namesOf({ ...FACTS, dnsServers: ['2001:db8::53'] })).toEqual([undefined, '{2001:db8::53}'])
})

test('guests ask for their addresses every five minutes, and learn of the way out then', () => {
  expect(optionsOf(FACTS)).toMatchObject({ lease_time: '600' })
  expect(optionsOf(FACTS)).not.toHaveProperty('router')
  const router = { natEnabled: true, otherCidrs: [], staticRoutes: [] }
  expect(optionsOf({ ...FACTS, router })).toMatchObject({ router: '10.0.0.1', lease_time: '600' })
})
