import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { metadataDocument } from '../../../agents/node/serve/metadata.ts'
import { type MetadataListener, startMetadataListener } from '../../../agents/node/serve/metadata-listener.ts'
import {
  answerMetadata,
  type RequestingGuest,
  type MetadataRequest,
} from '../../../agents/node/serve/metadata-service.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { instanceSpec } from './instance-spec.ts'

const now = new Date('2026-01-01T00:00:00Z')
const spec = instanceSpec({
  hostname: 'web-1',
  interfaces: [
    {
      macAddress: '02:00:00:00:00:01',
      kind: 'public',
      ipv6: { address: '2001:db8::1', prefix: 64, gateway: 'fe80::1' },
    },
  ],
})
const guest: RequestingGuest = {
  isEnabled: true,
  document: metadataDocument(spec),
  userData: async () => Buffer.from('#!/bin/sh\n'),
  tokenKey: 'key',
}
const ask = (request: Partial<MetadataRequest>, of: Partial<RequestingGuest> = {}, at = now) =>
  answerMetadata(
    { method: 'GET', path: '/metadata/v1.json', ...request, headers: { host: '169.254.169.254', ...request.headers } },
    { ...guest, ...of },
    at,
  )
const tokenFor = async (seconds: string, of: Partial<RequestingGuest> = {}) =>
  String(
    (await ask({ method: 'PUT', path: '/metadata/v1/token', headers: { 'x-metadata-token-ttl': seconds } }, of)).body,
  )

describe('the metadata service', () => {
  it('returns its data to a guest with a token', async () => {
    const token = await tokenFor('60')
    const { status, type, body } = await ask({ headers: { 'x-metadata-token': token } })
    expect([status, type]).toEqual([200, 'application/json'])
    expect(JSON.parse(String(body))).toMatchObject({
      hostname: 'web-1',
      interfaces: [
        {
          mac: '02:00:00:00:00:01',
          kind: 'public',
          ipv4: null,
          ipv6: { address: '2001:db8::1', prefix: 64, gateway: 'fe80::1' },
        },
      ],
    })
    expect(String((await ask({ path: '/metadata/v1/user_data', headers: { 'x-metadata-token': token } })).body)).toBe(
      '#!/bin/sh\n',
    )
    expect(
      String((await ask({ path: '/metadata/v1/network-config', headers: { 'x-metadata-token': token } })).body),
    ).toContain('version: 2')
    expect(
      (
        await ask(
          { path: '/metadata/v1/user_data', headers: { 'x-metadata-token': token } },
          { userData: async () => undefined },
        )
      ).status,
    ).toBe(404)
  })

  it('gives tokens of 1 to 21600 seconds, for the guest that asked and until then only', async () => {
    for (const lifetime of ['0', '21601', '1.5', '-1', '', 'x'])
      expect(
        (await ask({ method: 'PUT', path: '/metadata/v1/token', headers: { 'x-metadata-token-ttl': lifetime } }))
          .status,
      ).toBe(400)
    expect((await ask({ method: 'PUT', path: '/metadata/v1/token' })).status).toBe(400)
    expect((await ask({ path: '/metadata/v1/token' })).status).toBe(405)
    const token = await tokenFor('21600')
    const read = async (given: string, of: Partial<RequestingGuest> = {}, at = now) =>
      (await ask({ headers: { 'x-metadata-token': given } }, of, at)).status
    expect(await read(token)).toBe(200)
    expect(await read(token, { tokenKey: 'of another guest' })).toBe(401)
    expect(await read(token, {}, new Date(now.getTime() + 21_600_000))).toBe(200)
    expect(await read(token, {}, new Date(now.getTime() + 21_600_001))).toBe(401)
    expect(await read(token.replace(/^\d+/, (expiry) => String(Number(expiry) + 1)))).toBe(401)
    expect(await read('')).toBe(401)
    expect((await ask({})).status).toBe(401)
  })

  it('answers cloud-init without one on the NoCloud paths, and nobody else', async () => {
    for (const path of ['/meta-data', '/user-data', '/vendor-data', '/network-config']) {
      expect((await ask({ path, headers: { 'user-agent': 'Cloud-Init/25.1' } })).status).toBe(200)
      expect((await ask({ path })).status).toBe(401)
      expect((await ask({ path, headers: { 'x-metadata-token': await tokenFor('60') } })).status).toBe(200)
    }
    expect((await ask({ headers: { 'user-agent': 'Cloud-Init/25.1' } })).status).toBe(401)
    expect(
      String(
        (
          await ask(
            { path: '/user-data', headers: { 'user-agent': 'Cloud-Init/25.1' } },
            { userData: async () => undefined },
          )
        ).body,
      ),
    ).toBe('#cloud-config\n{}\n')
  })

  it('refuses what came through a proxy or for another host', async () => {
    const token = await tokenFor('60')
    expect((await ask({ headers: { 'x-metadata-token': token, 'x-forwarded-for': '10.0.0.1' } })).status).toBe(403)
    expect((await ask({ headers: { 'x-metadata-token': token, host: 'rebound.example' } })).status).toBe(403)
    expect((await ask({ headers: { 'x-metadata-token': token, host: '169.254.169.254:80' } })).status).toBe(200)
  })

  it('is silent while it is switched off', async () => {
    const token = await tokenFor('60')
    expect((await ask({ headers: { 'x-metadata-token': token } }, { isEnabled: false })).status).toBe(404)
    expect(
      (
        await ask(
          { method: 'PUT', path: '/metadata/v1/token', headers: { 'x-metadata-token-ttl': '60' } },
          { isEnabled: false },
        )
      ).status,
    ).toBe(404)
  })

  it('knows its methods and paths', async () => {
    const headers = { 'x-metadata-token': await tokenFor('60') }
    expect((await ask({ method: 'POST', headers })).status).toBe(405)
    expect((await ask({ method: 'HEAD', headers })).status).toBe(200)
    expect((await ask({ path: '/', headers })).status).toBe(404)
    expect((await ask({ path: '/metadata/v1.json?x=1', headers })).status).toBe(200)
  })
})

describe('the port that guests are joined to', () => {
  let listener: MetadataListener
  beforeEach(async () => {
    listener = await startMetadataListener({
      clock: systemClock,
      log: silentLog,
      guestOf: async (secret) => (secret === 'good' ? guest : undefined),
    })
  })
  afterEach(() => listener.stop())

  const talk = (...pieces: readonly string[]) =>
    new Promise<string>((resolve, reject) => {
      let text = ''
      const socket = connect(listener.port, '127.0.0.1', async () => {
        for (const piece of pieces) {
          socket.write(piece)
          await systemClock.sleep(5)
        }
      })
      socket.on('data', (chunk) => void (text += String(chunk)))
      socket.once('close', () => resolve(text))
      socket.once('error', reject)
    })
  const REQUEST = 'PUT /metadata/v1/token HTTP/1.1\r\nHost: 169.254.169.254\r\nX-Metadata-Token-TTL: 60\r\n\r\n'

  it('answers the guest whose secret comes first, in pieces of any size, and closes', async () => {
    expect(await talk(`good\n${REQUEST}`)).toMatch(/^HTTP\/1.1 200 OK\r\n/)
    expect(await talk('go', 'od', '\n', REQUEST.slice(0, 10), REQUEST.slice(10))).toMatch(/\r\nconnection: close\r\n/i)
  })
  it('says nothing to anybody else', async () => {
    expect(await talk(`bad\n${REQUEST}`)).toBe('')
    expect(await talk('x'.repeat(1_000))).toBe('')
  })
})
