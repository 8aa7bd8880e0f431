/** What guests have moved, asked of hosts that are in an attacker's hands: they have the pinned certificate. */
import { mkdtemp } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openCertificate } from '../../../../agents/node/serve/certificate.ts'
import { usageFromAgents } from '../../../../controllers/nouns/usage/agents.ts'
import type { Store } from '../../../../kit/kube/store.ts'
import { type Clock, systemClock } from '../../../../kit/sys/clock.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'

const certificate = await openCertificate(await mkdtemp(join(tmpdir(), 'svccloud-agent-')), systemClock, systemRandom)
/** The time limit of an answer, a hundred times as fast. */
const hastyClock: Clock = { ...systemClock, after: (milliseconds, work) => systemClock.after(milliseconds / 100, work) }

async function ask(answer: (response: ServerResponse) => void, clock = systemClock): Promise<unknown> {
  const server = createServer({ cert: certificate.certificate, key: certificate.key }, (_request, response) =>
    answer(response),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // a listening TCP server has one
  // the only call that is made of it here
  const store = { get: async () => ({ data: { token: 'dA==' } }) } as unknown as Store
  const endpoint = { url: `https://127.0.0.1:${port}`, certificateFingerprint: certificate.fingerprint }
  const node = { metadata: { name: 'n1' }, status: { endpoint } }
  try {
    // the fields that are read of a node
    return await usageFromAgents({ store, clock })(node as never)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

test('an answer is read', async () => {
  expect(await ask((response) => response.end('{"guests":[]}'))).toEqual([])
})

test('an answer without an end is given up by its size', async () => {
  const pour = (response: ServerResponse): void => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536, ' ')));
  }
  await expect(ask((response) => pour(response.on('drain', () => pour(response))))).rejects.toThrow('bytes were sent')
})

test('an answer that comes byte by byte is given up by its time', async () => {
  const drip = (response: ServerResponse): void => {
    if (response.destroyed) return
    response.write(' ')
    systemClock.after(10, () => drip(response))
  }
  await expect(ask(drip, hastyClock)).rejects.toThrow()
})
