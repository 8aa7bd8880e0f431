import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type DataFolder, prepareDataFolder } from '../../../embedded/kit/data-folder.ts'
import { chooseNetwork, type NetworkNeeds } from '../../../embedded/ovn/choose.ts'
import { planFile } from '../../../embedded/ovn/network.ts'
import { makeFolder } from '../../../kit/sys/make-folder.ts'

let folder: DataFolder
let printed: string[]
beforeEach(async () => {
  folder = await prepareDataFolder(await mkdtemp(join(tmpdir(), 'svccloud-choose-')))
  printed = []
})
afterEach(async () => {
  await rm(folder.root, { recursive: true, force: true })
})

const choose = (needs: Partial<NetworkNeeds>) =>
  chooseNetwork({
    network: 'auto',
    hypervisor: 'qemu',
    hasPublicRoute: false,
    hasRoot: true,
    mayInstall: false,
    folder,
    settings: {},
    print: (line) => void printed.push(line),
    ...needs,
  })

it.each([
  ['simulated guests have none', { hypervisor: 'simulated' }, 'simulated'],
  ['who wants none has none', { network: 'user' }, '--network user'],
] as const)('%s, without a word', async (_why, needs, why) => {
  expect(await choose(needs)).toEqual({ obstacle: expect.stringContaining(why) })
  expect(printed).toEqual([])
})

it('a network of guests that somebody set stays, and that is said', async () => {
  expect(await choose({ settings: { guestNetwork: 'isolated' } })).toEqual({
    obstacle: 'SVCCLOUD_GUEST_NETWORK is set',
  })
  expect(printed).toEqual([expect.stringMatching(/SVCCLOUD_GUEST_NETWORK is set\. .*Private networks.* are off\.$/)])
})

it('guests whose disks are in Ceph have none, and who demands one is refused', async () => {
  const settings = { cephPool: 'disks' }
  expect(await choose({ settings })).toEqual({ obstacle: expect.stringContaining('would not reach the Ceph cluster') })
  expect(printed).toEqual([expect.stringMatching(/SVCCLOUD_CEPH_POOL is set.*Private networks.* are off\.$/)])
  await expect(choose({ settings, network: 'ovn' })).rejects.toThrow('would not reach the Ceph cluster')
})

it('a folder that was made without it stays so, and that is said', async () => {
  await writeFile(folder.catalogFile, '')
  expect(await choose({})).toEqual({ obstacle: expect.stringContaining('was started without it') })
  expect(printed).toEqual([expect.stringContaining('npm start -- --network ovn')])
})

it('a folder that was made with it has it where the machine lets it', async () => {
  await writeFile(folder.catalogFile, '')
  await makeFolder(folder.network, 0o700)
  await writeFile(planFile(folder), '{}')
  const decision = await choose({})
  if ('obstacle' in decision) expect(decision.obstacle).toMatch(/^Open Virtual Network cannot be had: /)
  else expect(printed).toEqual([])
})

it('refuses a network that simulated guests cannot have', async () => {
  await expect(choose({ hypervisor: 'simulated', network: 'ovn' })).rejects.toThrow('--network ovn needs real guests')
})

it('only root gives the machine a route', async () => {
  await expect(choose({ hasPublicRoute: true, hasRoot: false })).rejects.toThrow('--public-route')
})
