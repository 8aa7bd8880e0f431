import { describe, expect, it } from 'vitest'
import { requireDeletable, requireIdle } from '../../../domain/idle-rules.ts'
import {
  choosePlacement,
  defaultEdgeName,
  EDGE_NAME_LENGTH_MAXIMUM,
  type EdgeMember,
  edgeMachinesOf,
  hasPair,
  membersFault,
  productionObstacle,
} from '../../../domain/edge/rules.ts'
import { FRONTENDS_MAXIMUM } from '../../../domain/load-balancer/rules.ts'

const SURROUNDINGS = {
  roles: ['bastion', 'nat_gateway', 'load_balancer'] as const,
  placement: 'combined' as const,
  ipv4Cidr: '10.1.0.0/24',
  ownAddresses: ['10.1.0.5', 'fd00::5'],
}
const member = (more: Partial<EdgeMember> = {}): EdgeMember => ({
  name: 'web-1',
  frontendPort: 80,
  address: '10.1.0.10',
  port: 8080,
  weight: 100,
  enabled: true,
  ...more,
})

describe('members of an edge', () => {
  it.each([
    ['a host of the network', [member()], undefined],
    ['an IPv6 address from anywhere', [member({ address: '2001:db8::1' })], undefined],
    ['several behind one port', [member(), member({ name: 'web-2', address: '10.1.0.11' })], undefined],
    ['one name for two', [member(), member({ port: 81 })], '1.name'],
    ['the same place twice', [member(), member({ name: 'web-2' })], '1.address'],
    ['the same IPv6 place, written otherwise', twice('2001:db8::1', '2001:db8:0::1'), '1.address'],
    ['no address', [member({ address: 'web.example' })], '0.address'],
    ['an address of another network', [member({ address: '10.2.0.10' })], '0.address'],
    ["the network's own address", [member({ address: '10.1.0.0' })], '0.address'],
    ["the router's address", [member({ address: '10.1.0.1' })], '0.address'],
    ['that of broadcasts', [member({ address: '10.1.0.255' })], '0.address'],
    ['the edge itself', [member({ address: '10.1.0.5' })], '0.address'],
    ['the edge itself by IPv6', [member({ address: 'FD00:0::5' })], '0.address'],
    ['loopback', [member({ address: '::1' })], '0.address'],
    ['a link', [member({ address: 'fe80::1' })], '0.address'],
    ['many', [member({ address: 'ff02::1' })], '0.address'],
    ['IPv4 in the clothes of IPv6', [member({ address: '64:ff9b::a01:a' })], '0.address'],
    ['the port of the bastion', [member({ frontendPort: 22 })], '0.frontendPort'],
    ['the port of the resolver', [member({ frontendPort: 53 })], '0.frontendPort'],
  ])('%s', (_words, members, fault) => {
    const found = membersFault(members, SURROUNDINGS)
    expect(found && `${found.index}.${found.field}`).toBe(fault)
  })

  it('share ports, of which there are at most so many', () => {
    const at = (count: number) =>
      Array.from({ length: count }, (_, index) => member({ name: `m${index}`, frontendPort: 1_000 + index }))
    expect(membersFault(at(FRONTENDS_MAXIMUM), SURROUNDINGS)).toBeUndefined()
    expect(membersFault(at(FRONTENDS_MAXIMUM + 1), SURROUNDINGS)).toMatchObject({ field: 'frontendPort' })
  })

  it('may have the ports of roles that are elsewhere', () => {
    expect(membersFault([member({ frontendPort: 22 })], { ...SURROUNDINGS, placement: 'separate' })).toBeUndefined()
    expect(membersFault([member({ frontendPort: 53 })], { ...SURROUNDINGS, roles: ['load_balancer'] })).toBeUndefined()
  })
})

function twice(one: string, other: string): EdgeMember[] {
  return [member({ address: one }), member({ name: 'web-2', address: other })]
}

it('has a machine for each role, or one for all', () => {
  const all = ['load_balancer', 'nat_gateway', 'bastion'] as const
  expect(edgeMachinesOf(all, 'combined')).toEqual([
    { name: 'combined', roles: ['bastion', 'nat_gateway', 'load_balancer'] },
  ])
  expect(edgeMachinesOf(all, 'separate').map(({ name }) => name)).toEqual(['bastion', 'nat'])
  expect(edgeMachinesOf(['bastion'], 'separate').map(({ name }) => name)).toEqual(['bastion'])
  expect([hasPair(all, 'separate'), hasPair(['bastion'], 'separate'), hasPair(all, 'combined')]).toEqual([
    true,
    false,
    false,
  ])
})

it('is separate where the zone has servers enough, and says what is missing when it is asked for elsewhere', () => {
  const [large, small] = [true, false].map((hasSeparateEdges) => ({ zone: 'z', hasSeparateEdges }))
  expect(large && choosePlacement(undefined, large)).toBe('separate')
  expect(small && choosePlacement(undefined, small)).toBe('combined')
  expect(large && choosePlacement('combined', large)).toBe('combined')
  expect(() => small && choosePlacement('separate', small)).toThrow(/separate_edges/)
  expect(productionObstacle('separate')).toBeUndefined()
  expect(productionObstacle('combined')).toMatch(/one machine/)
})

it('is named after its network', () => {
  expect(defaultEdgeName('back')).toBe('back-edge')
  expect(defaultEdgeName('n'.repeat(100))).toHaveLength(EDGE_NAME_LENGTH_MAXIMUM)
})

it('is changed by one operation at a time; deleting one that is being made ends that', () => {
  const facts = (action?: string) => ({
    id: 'e',
    isDeleting: false,
    activeOperation: action === undefined ? undefined : { id: 'o', action },
  })
  expect(() => requireIdle('edge', facts('create'))).toThrow(/operation/i)
  expect(() => requireDeletable('edge', facts('update'))).toThrow(/operation/i)
  requireDeletable('edge', facts('create'))
  requireDeletable('edge', facts())
  requireIdle('edge', facts())
})

it('is changed no more once it is being deleted, and is deleted again', () => {
  const facts = { id: 'e', isDeleting: true, activeOperation: undefined }
  expect(() => requireIdle('edge', facts)).toThrow('The edge is being deleted.')
  requireDeletable('edge', facts)
})
