import { describe, expect, test } from 'vitest'
import { networkOf, plan } from '../../../controllers/network/index.ts'
import type { InstanceSpec } from '../../../resources/instance/index.ts'
import type { NodeSpec, NodeStatus } from '../../../resources/node/index.ts'
import { instanceSpec } from '../../agents/node/instance-spec.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const API_VERSION = 'svccloud.dev/v1alpha1'
const ADDRESSED: InstanceSpec['interfaces'] = [
  {
    macAddress: '52:54:00:00:00:01',
    kind: 'public',
    ipv4: { address: '203.0.113.77', prefix: 26, gateway: '203.0.113.65' },
    routedPrefixes: ['2001:db8:1::/64', '2001:db8:2::/64'],
  },
]
const instance = (node: string, spec: Partial<InstanceSpec> = {}, name = 'guest') => ({
  apiVersion: API_VERSION,
  kind: 'Instance',
  metadata: { namespace: `node-${node}`, name },
  spec: instanceSpec({ interfaces: ADDRESSED, ...spec }),
})
const node = (name: string, state: NodeStatus['state'], roles: NodeSpec['roles'] = ['compute']) => ({
  apiVersion: API_VERSION,
  kind: 'Node',
  metadata: { name },
  spec: { zone: 'z1', rack: 'r1', roles, isCordoned: false, cpuOvercommit: 4, reservedMemoryMebibytes: 0 },
  status: { state } as NodeStatus,
})
const ZONE = { displayName: 'Z', region: 'r', isClosed: false, capabilities: [] }
const RECEIVE = { id: 'op', attempt: 1, mirroredVolumes: [], secretName: 's' }

describe('the network of a zone', () => {
  test('has a port for every guest, with what leads to it', () => {
    expect(networkOf('z1', ZONE, [instance('n1')], []).ports).toEqual([
      {
        name: 'guest',
        macAddress: '52:54:00:00:00:01',
        ipv4: { address: '203.0.113.77', prefix: 26, gateway: '203.0.113.65', cidr: '203.0.113.64/26' },
        ipv6Prefixes: ['2001:db8:1::/64', '2001:db8:2::/64'],
        nodes: ['n1'],
      },
    ])
  })

  test('has one port for a guest that moves, where it is before where it goes to', () => {
    expect(
      networkOf('z1', ZONE, [instance('n2', { receive: RECEIVE }), instance('n1')], []).ports.map(({ nodes }) => nodes),
    ).toEqual([['n1', 'n2']])
  })

  test('has the addresses outside in their canonical form, each once', () => {
    const publicNetwork = {
      physicalNetwork: 'wire',
      addresses: ['2001:DB8:0::2/64', '2001:db8::2/64', '198.51.100.2/24'],
      gateways: ['FE80::0001'],
    }
    expect(networkOf('z1', { ...ZONE, publicNetwork }, [], []).outside).toEqual({
      physicalNetwork: 'wire',
      addresses: ['2001:db8::2/64', '198.51.100.2/24'],
      gateways: ['fe80::1'],
    })
  })

  test('goes outside by nodes for the network that are alive, else by any that is', () => {
    expect(
      networkOf('z1', ZONE, [], [node('b', 'cordoned'), node('a', 'ready'), node('c', 'unreachable')]).gatewayNodes,
    ).toEqual(['a', 'b'])
    expect(
      networkOf('z1', ZONE, [], [node('a', 'ready'), node('b', 'ready', ['network']), node('c', 'fenced', ['network'])])
        .gatewayNodes,
    ).toEqual(['b'])
  })
})

test('what was brought about is left alone until it changes', () => {
  const zone = { apiVersion: API_VERSION, kind: 'Zone', metadata: { name: 'z1' }, spec: ZONE }
  const network = networkOf('z1', ZONE, [instance('n1')], [])
  const [first] = plan(zone, { network, appliedDigest: undefined }, NOW)
  expect(first).toMatchObject({ do: 'effect', name: 'converge', input: { network } })
  const appliedDigest = first?.do === 'effect' ? String(first.input['digest']) : ''
  expect(plan(zone, { network, appliedDigest }, NOW).map((action) => action.do)).toEqual(['wait'])
  expect(plan(zone, { network: networkOf('z1', ZONE, [], []), appliedDigest }, NOW).map((action) => action.do)).toEqual(
    ['effect', 'wait'],
  )
})
