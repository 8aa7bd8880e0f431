import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  configuredHostsOf,
  controlPlanesIn,
  type HostedControlPlanes,
  hostsOf,
  openControlPlanes,
} from '../../../integrations/control-planes/configuration.ts'
import { systemClock } from '../../../kit/sys/clock.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-hosts-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function written(name: string, content: unknown): Promise<string> {
  const file = join(folder, name)
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}
const host = (...regions: readonly string[]) => ({ url: 'https://host.example:1', token: 't', regions })
const open = async (hosts: unknown, more: object = {}) =>
  openControlPlanes({ controlPlanesFile: await written('hosts.json', hosts), ...more }, systemClock)

test('each region has the host that is named with it', async () => {
  const offer = await open([host('eu-2', 'eu-3'), host('us-1')], {
    controlPlanesUrl: 'http://127.0.0.1:1',
    controlPlanesTokenFile: await written('token', 't'),
    controlPlanesRegions: ['eu-1'],
  })
  const regionsOf = (region: string) => {
    const found = controlPlanesIn(offer, region)
    return 'obstacle' in found ? found.obstacle : found.regions
  }
  expect(['eu-1', 'eu-3', 'us-1'].map(regionsOf)).toEqual([['eu-1'], ['eu-2', 'eu-3'], ['us-1']])
  expect(regionsOf('ap-1')).toBe('none is configured for region ap-1')
  expect(hostsOf(offer)).toHaveLength(3)
})

test('without any it says how to name one, and what is half there is refused', async () => {
  expect(hostsOf(await openControlPlanes({}, systemClock))).toEqual([])
  expect(await openControlPlanes({}, systemClock)).toMatchObject({
    obstacle: expect.stringContaining('CONTROL_PLANES_FILE'),
  })
  await expect(open([host('eu-1'), host('eu-1')])).rejects.toThrow('region eu-1 has two hosts')
  await expect(open([{ url: 'ftp://host', token: 't', regions: ['eu-1'] }])).rejects.toThrow()
  await expect(open([])).rejects.toThrow()
  const half = { controlPlanesUrl: 'http://127.0.0.1:1' }
  await expect(openControlPlanes(half, systemClock)).rejects.toThrow('token file')
})

test('an empty file of a token or an authority is refused', async () => {
  const settings = {
    controlPlanesUrl: 'http://127.0.0.1:1',
    controlPlanesTokenFile: await written('token', 't'),
    controlPlanesAuthorityFile: await written('ca.crt', 'PEM'),
    controlPlanesRegions: ['eu-1'],
  }
  await expect(openControlPlanes(settings, systemClock)).resolves.toMatchObject({ regions: ['eu-1'] })
  const nothing = await written('nothing', '\n')
  for (const name of ['controlPlanesTokenFile', 'controlPlanesAuthorityFile'])
    await expect(openControlPlanes({ ...settings, [name]: nothing }, systemClock)).rejects.toThrow('nothing is empty')
  await expect(open([{ ...host('eu-1'), authority: '' }])).rejects.toThrow('authority')
})

test('those that the platform makes are found beside those of settings, which go before them', async () => {
  const { control } = (await open([host('eu-9')])) as HostedControlPlanes
  const offer = {
    ...(await open([host('eu-1')])),
    ownHosts: () => [
      { regions: ['eu-1'], control },
      { regions: ['eu-2'], control },
    ],
  }
  expect(hostsOf(offer).map(({ regions }) => regions)).toEqual([['eu-1'], ['eu-2']])
  expect(controlPlanesIn(offer, 'eu-2')).toMatchObject({ control })
  expect(controlPlanesIn(offer, 'eu-1')).not.toMatchObject({ control })
  expect(configuredHostsOf(offer)).toHaveLength(1)
  const alone = { obstacle: 'none', ownHosts: () => [{ regions: ['eu-2'], control }] }
  expect(controlPlanesIn(alone, 'eu-2')).toMatchObject({ control })
  expect(controlPlanesIn(alone, 'eu-1')).toMatchObject({ obstacle: 'none' })
})
