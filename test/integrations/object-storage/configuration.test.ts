/** Which object storage the environment tells of. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { archivesIn, offerIn, openObjectStorage } from '../../../integrations/object-storage/configuration.ts'
import { systemClock } from '../../../kit/sys/clock.ts'

const GATEWAY = {
  zones: ['a'],
  endpoint: 'https://{zone}.objects.example',
  admin_url: 'https://gateway.internal:8443',
  access_key_id: 'KEY',
  secret_access_key: 'never-shown',
  copies: 3,
}
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gateways-'))
  for (const name of ['token', 'ca.crt']) await writeFile(join(folder, name), name)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const single = (...zones: string[]) => ({
  objectStorageControlUrl: 'http://127.0.0.1:1',
  objectStorageTokenFile: join(folder, 'token'),
  objectStorageEndpoint: 'https://localhost:2',
  objectStorageAuthorityFile: join(folder, 'ca.crt'),
  objectStorageZones: zones,
})
async function opened(gateways: unknown, environment: Parameters<typeof openObjectStorage>[0] = {}) {
  const file = join(folder, 'gateways.json')
  await writeFile(file, typeof gateways === 'string' ? gateways : JSON.stringify(gateways))
  return openObjectStorage({ ...environment, rgwFile: file }, systemClock)
}

describe('object storage', () => {
  test('of no environment is nowhere, with the reason given, or a default one', async () => {
    const never = await openObjectStorage({}, systemClock)
    expect(offerIn(never, 'a')).toEqual({ obstacle: expect.stringContaining('SVCCLOUD_RGW_FILE') })
    const told = await openObjectStorage({ objectStorageObstacle: 'nobody built it' }, systemClock)
    expect(offerIn(told, 'a')).toEqual({ obstacle: 'nobody built it' })
  })

  test('of a zone is its gateway, the single host, or the gateway before the host', async () => {
    const offer = await opened([GATEWAY, { ...GATEWAY, zones: ['b'], copies: 2 }], single('b', 'c'))
    const summary = (zone: string, backend?: 'rgw' | 'svc-s3-single') => {
      const found = offerIn(offer, zone, backend)
      return 'obstacle' in found ? 'none' : `${found.backend} ${found.durability} ${found.endpointOf(zone)}`
    }
    expect(['a', 'b', 'c', 'd'].map((zone) => summary(zone))).toEqual([
      'rgw replicated https://a.objects.example',
      'rgw degraded https://b.objects.example',
      'svc-s3-single single_copy https://localhost:2',
      'none',
    ])
    expect(summary('b', 'svc-s3-single')).toBe('svc-s3-single single_copy https://localhost:2')
    expect([summary('a', 'svc-s3-single'), summary('c', 'rgw')]).toEqual(['none', 'none'])
  })

  test('with an empty file of its token or its authority is refused', async () => {
    await writeFile(join(folder, 'nothing'), '\n')
    for (const name of ['objectStorageTokenFile', 'objectStorageAuthorityFile'])
      await expect(openObjectStorage({ ...single('a'), [name]: join(folder, 'nothing') }, systemClock)).rejects.toThrow(
        'nothing is empty',
      )
  })

  test('takes archives of databases on the single host, and on a gateway that is said to', async () => {
    const taking = { ...GATEWAY, takes_archives: true, certificate_authority: 'BEGIN CERTIFICATE' }
    const offer = await opened([taking, { ...GATEWAY, zones: ['b'] }, { ...GATEWAY, zones: ['c'] }], single('b'))
    const found = ['a', 'b', 'c', 'd'].map((zone) => {
      const store = archivesIn(offer, zone)
      return 'obstacle' in store ? store.obstacle : store.backend
    })
    expect(found).toEqual([
      'rgw',
      'svc-s3-single',
      expect.stringContaining('takes_archives'),
      'none is configured for zone d',
    ])
    await expect(opened([taking], single('a'))).rejects.toThrow('are on its single host')
  })

  test('is asked by connections that all its callers share', async () => {
    const connections = new Set<unknown>()
    const server = createServer((request, response) => {
      connections.add(request.socket)
      response.end()
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close().closeAllConnections())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const store = offerIn(await opened([{ ...GATEWAY, admin_url: `http://127.0.0.1:${port}` }]), 'a')
    if ('obstacle' in store) throw new Error(store.obstacle)
    for (const accessKeyId of ['ONE', 'TWO', 'THREE'])
      await store.openS3('a', { accessKeyId, secretAccessKey: 'secret' }).exchange.askWhole({ method: 'GET' })
    expect(connections.size).toBe(1)
  })

  test('of one copy promises no more', async () => {
    const found = offerIn(await opened([{ ...GATEWAY, copies: 1 }]), 'a')
    expect(found).toMatchObject({ durability: 'single_copy', certificateAuthority: null })
  })

  test.each<[string, unknown, RegExp]>([
    ['is not JSON', '{', /is not JSON/],
    ['lacks something', [{ ...GATEWAY, admin_url: undefined }], /admin_url/],
    ['has a zone twice', [GATEWAY, GATEWAY], /a zone has one gateway/],
    ['has a path in its endpoint', [{ ...GATEWAY, endpoint: 'https://a.example/path' }], /endpoint/],
    ['has an authority that is no certificate', [{ ...GATEWAY, certificate_authority: 'x' }], /certificate_authority/],
    ['takes archives by a certificate of anybody', [{ ...GATEWAY, takes_archives: true }], /who signed/],
    ['promises no copies', [{ ...GATEWAY, copies: 0 }], /copies/],
  ])('is refused, and its secret not shown, when its file %s', async (_what, gateways, reason) => {
    const failure = await opened(gateways).then(
      () => 'accepted',
      (error: unknown) => String(error),
    )
    expect(failure).toMatch(reason)
    expect(failure).not.toContain('never-shown')
  })
})
