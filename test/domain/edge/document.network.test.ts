/** What the machines of edges get, checked with the programs that read it. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type EdgeMachineInput, edgeMachineParts } from '../../../domain/edge/document.ts'
import { EDGE_ROLES, type EdgeRole } from '../../../domain/edge/rules.ts'

const run = promisify(execFile)
let folder = ''
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), 'svccloud-edge-'))))
afterAll(() => rm(folder, { recursive: true }))

/** Every set of roles, with and without members and resolvers, in ranges of each kind. */
const INPUTS: readonly EdgeMachineInput[] = Array.from({ length: 2 ** EDGE_ROLES.length - 1 }, (_, index) => index + 1)
  .map((bits): readonly EdgeRole[] => EDGE_ROLES.filter((_, bit) => (bits >> bit) % 2 === 1))
  .flatMap((roles) =>
    [
      { ipv4Cidr: '10.1.0.0/16', ipv4: '10.1.255.254', resolvers: [], ports: [] },
      {
        ipv4Cidr: '100.127.0.16/28',
        ipv4: '100.127.0.18',
        resolvers: ['192.0.2.53', '2001:db8::53'],
        ports: [80, 443],
      },
    ].map(({ ports, ...network }) => ({
      ...network,
      edgeId: 'e1',
      roles,
      ipv6Prefix: 'fd12:3456:789a:1::/64',
      ipv6: 'fd12:3456:789a:1::5',
      macAddress: '52:54:00:00:00:05',
      sshKeys: [],
      members: ports.map((frontendPort) => ({
        name: `web-${frontendPort}`,
        frontendPort,
        address: '2001:db8::1',
        port: 80,
        weight: 1,
        enabled: true,
      })),
    })),
  )

it('gives valid nftables rulesets, for all roles', async () => {
  expect(INPUTS).toHaveLength(14)
  for (const input of INPUTS) {
    const file = join(folder, 'rules.nft')
    await writeFile(file, edgeMachineParts(input).nftables)
    expect(await run('unshare', ['--net', 'nft', '-c', '-f', file]), input.roles.join()).toMatchObject({ stderr: '' })
  }
})

it('gives unbound configurations that it takes', async () => {
  for (const input of INPUTS.filter(({ roles }) => roles.includes('nat_gateway'))) {
    const file = join(folder, 'unbound.conf')
    await writeFile(file, edgeMachineParts(input).dns64?.config.replaceAll('@RUN@', folder) ?? '')
    expect((await run('unbound-checkconf', [file])).stdout).toContain('no errors')
  }
})

it('gives HAProxy configurations that it takes', async () => {
  for (const input of INPUTS.filter(({ members }) => members.length > 0)) {
    const file = join(folder, 'haproxy.cfg')
    const { config } = edgeMachineParts(input).haproxy ?? {}
    expect(config === undefined).toBe(!input.roles.includes('load_balancer'))
    if (config === undefined) continue
    await writeFile(file, config.replaceAll(/@(RUN|ROOT)@/g, folder))
    expect((await run('haproxy', ['-c', '-f', file])).stdout).toContain('valid')
  }
})
