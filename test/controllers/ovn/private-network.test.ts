import { expect, test } from 'vitest'
import { type NetworkFacts, networkRows } from '../../../controllers/ovn/private-network.ts'

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

test('guests ask for their addresses every five minutes, and learn of the way out then', () => {
  expect(optionsOf(FACTS)).toMatchObject({ lease_time: '600' })
  expect(optionsOf(FACTS)).not.toHaveProperty('router')
  const router = { natEnabled: true, otherCidrs: [], staticRoutes: [] }
  expect(optionsOf({ ...FACTS, router })).toMatchObject({ router: '10.0.0.1', lease_time: '600' })
})
