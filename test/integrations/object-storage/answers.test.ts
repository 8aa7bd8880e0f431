/** The platform believes a store, and nothing else that answers at its address: a tenant is unknown, told or gone only
 *  when the store says so. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { Unavailable } from '../../../domain/problem.ts'
import { openControl, UNKNOWN_TENANT } from '../../../integrations/object-storage/control.ts'
import { newTenantKeys } from '../../../integrations/object-storage/keys.ts'
import { openGateway } from '../../../integrations/object-storage/rgw.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const { bucketPrefix, ...credentials } = newTenantKeys(systemRandom)
const SETTINGS = { ...credentials, bucketPrefix, quotaBytes: 1, isSuspended: false, isFrozen: false }

/** Something that answers everything the same. */
async function openAnswering(status: number, text: string) {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(status, { connection: 'close' }).end(text)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number } // of a listening server
  const url = `http://127.0.0.1:${port}`
  const never = () => ({ signal: new AbortController().signal, cancel: () => {} })
  return {
    single: openControl({ url, token: 'token' }, never),
    gateway: openGateway({ url, authority: null, credentials, clock }),
  }
}

test.each([
  [404, ''],
  [404, '<html>404 Not Found</html>'],
  [200, ''],
  [200, '<html>It works!</html>'],
  [202, ''],
])('a stranger that answers %i %j is no store', async (status, text) => {
  const { single, gateway } = await openAnswering(status, text)
  await expect(single.putTenant('ada', SETTINGS)).rejects.toThrow(Unavailable)
  await expect(single.removeTenant('ada', true)).rejects.toThrow(Unavailable)
  for (const store of [single, gateway]) await expect(store.getTenant('ada')).rejects.toThrow()
  if (status === 404) await expect(gateway.removeTenant('ada', true)).rejects.toThrow(Unavailable)
})

test('a store that does not know a tenant says so', async () => {
  expect(await (await openAnswering(404, UNKNOWN_TENANT)).single.getTenant('ada')).toBeUndefined()
  const { gateway } = await openAnswering(404, '{"Code":"NoSuchUser"}')
  expect([await gateway.getTenant('ada'), await gateway.removeTenant('ada', true)]).toEqual([undefined, true])
})
