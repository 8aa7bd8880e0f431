import { expect, it } from 'vitest'
import { type EdgeMachineInput, edgeMachineParts, innerPool } from '../../../domain/edge/document.ts'
import { EDGE_ROLES } from '../../../domain/edge/rules.ts'

const INPUT: EdgeMachineInput = {
  edgeId: 'e1',
  roles: EDGE_ROLES,
  ipv4Cidr: '10.1.0.0/24',
  ipv6Prefix: 'fd12:3456:789a:1::/64',
  ipv4: '10.1.0.5',
  ipv6: 'fd12:3456:789a:1::5',
  macAddress: '52:54:00:00:00:05',
  resolvers: [],
  sshKeys: ['ssh-ed25519 B', 'ssh-ed25519 A'],
  members: [{ name: 'web', frontendPort: 80, address: '10.1.0.10', port: 8080, weight: 100, enabled: true }],
}

it('runs what its roles need and nothing else', () => {
  const programs = (roles: EdgeMachineInput['roles']) => {
    const { nat64, dns64, bastion, routes, nftables } = edgeMachineParts({ ...INPUT, roles })
    return {
      translates: [nat64, dns64, routes].filter((part) => part !== undefined).length,
      signsIn: bastion?.authorizedKeys.length,
      forwards: /masquerade|dnat/.test(nftables),
      answers: [...nftables.matchAll(/dport (\d+|\{ [\d, ]+ \}) accept/g)].map(([, ports]) => ports),
    }
  }
  expect(programs(['bastion'])).toEqual({ translates: 0, signsIn: 2, forwards: false, answers: ['{ 68, 546 }', '22'] })
  expect(programs(['nat_gateway'])).toMatchObject({ translates: 3, signsIn: undefined, forwards: true })
  expect(programs(['load_balancer'])).toEqual({
    translates: 0,
    signsIn: undefined,
    forwards: false,
    answers: ['{ 68, 546 }', '{ 80 }'],
  })
})

it('passes nothing on without the role of a gateway', () => {
  expect(edgeMachineParts({ ...INPUT, roles: ['bastion'] }).sysctl).toMatchObject({ 'net.ipv4.ip_forward': '0' })
  expect(edgeMachineParts(INPUT).sysctl).toMatchObject({ 'net.ipv4.ip_forward': '1' })
})

it('is the same text for the same demand, however that is ordered', () => {
  expect(edgeMachineParts({ ...INPUT, sshKeys: INPUT.sshKeys.toReversed() })).toEqual(edgeMachineParts(INPUT))
})

it('translates by way of a range that the network does not have', () => {
  expect(innerPool('10.1.0.0/24')).toBe('100.127.0.0/16')
  expect(innerPool('100.127.5.0/24')).toBe('10.127.0.0/16')
  expect(innerPool('100.64.0.0/16')).toBe('100.127.0.0/16')
})
