import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Unavailable } from '../../../domain/problem.ts'
import { openPlatformClient } from '../../../integrations/organisation-platform/client.ts'
import { openOrganisationPlatform } from '../../../integrations/organisation-platform/configuration.ts'
import { PlatformRefusal } from '../../../integrations/organisation-platform/platform.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { type FakePlatform, startFakePlatform } from '../../organisation-platform.ts'

let fake: FakePlatform
beforeAll(async () => void (fake = await startFakePlatform()))
afterAll(() => fake.close())
beforeEach(() => void (fake.fault = undefined))

const client = (more = {}) => openPlatformClient({ url: fake.url, token: fake.token, clock: systemClock, ...more })
const CLUSTER = {
  id: 'shop',
  organisationId: 'o',
  name: 'shop',
  region: 'eu-1',
  version: '1.36.3',
  endpoint: 'https://a:1',
  certificateAuthority: 'pem',
  stacks: [{ name: 'csi-driver', version: '0.1.0' }],
}

test('a cluster is registered, again, and removed, any number of times', async () => {
  const told = { cluster_id: 'c-shop', url: 'https://platform.test/shop', agent: [] }
  expect(await client().register(CLUSTER)).toEqual(told)
  expect(await client().register(CLUSTER)).toEqual(told)
  expect(fake.clusters.get('shop')).toEqual({
    organisation_id: 'o',
    name: 'shop',
    region: 'eu-1',
    version: '1.36.3',
    endpoint: 'https://a:1',
    certificate_authority: 'pem',
    stacks: [{ name: 'csi-driver', version: '0.1.0' }],
  })
  await client().deregister('shop')
  await client().deregister('shop')
  expect(fake.clusters.size).toBe(0)
})

test.each([
  ['with a reason', 409, '{"detail":"the organisation is closed"}', 'refuses: the organisation is closed'],
  ['without one', 404, '', 'refuses: status 404'],
  ['with a long one', 422, JSON.stringify({ detail: 'x'.repeat(9_000) }), /refuses: x{300}$/],
])('a refusal %s', async (_how, status, text, message) => {
  fake.fault = { status, text }
  const failure = await client()
    .register(CLUSTER)
    .catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(PlatformRefusal)
  expect(String(failure)).toMatch(message)
})

test.each([
  ['is not itself', { status: 503, text: '' }],
  ['has too much to do', { status: 429, text: '' }],
  ['answers something else', { status: 200, text: '{"cluster_id":""}' }],
  ['answers too much', { status: 200, text: ' '.repeat(200_000) }],
  ['sends the token elsewhere', { status: 307, text: '' }],
])('a platform that %s is away', async (_what, fault) => {
  fake.fault = fault
  await expect(client().register(CLUSTER)).rejects.toBeInstanceOf(Unavailable)
  if (fault.status !== 200) await expect(client().deregister('shop')).rejects.toBeInstanceOf(Unavailable)
  expect(fake.requests.join()).not.toContain('/elsewhere')
})

test('a wrong token is refused, and nobody at the address is away', async () => {
  await expect(client({ token: 'x' }).register(CLUSTER)).rejects.toThrow('who are you?')
  await expect(client({ url: 'http://127.0.0.1:1' }).register(CLUSTER)).rejects.toBeInstanceOf(Unavailable)
})

test('settings that are half there are refused', async () => {
  expect(await openOrganisationPlatform({}, systemClock)).toBeUndefined()
  const half = { organisationPlatformUrl: fake.url }
  await expect(openOrganisationPlatform(half, systemClock)).rejects.toThrow('token file')
})
