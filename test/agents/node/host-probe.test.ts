/** What an observer says of endpoints in every state that one can be in. */
import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createPlainServer, type Server, type Socket } from 'node:net'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { planObservation } from '../../../agents/node/observation.ts'
import { type AgentCertificate, openCertificate } from '../../../agents/node/serve/certificate.ts'
import { hostProbe } from '../../../agents/node/host-probe.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

let folder: string
let certificate: AgentCertificate
const open: Server[] = []
const sockets = new Set<Socket>()
/** Patience that is over before anything can have answered. */
const impatient = {
  ...systemClock,
  after: (_milliseconds: number, work: () => void) => (queueMicrotask(work), () => {}),
}
/** Patience that is over soon after there is a connection. */
const hasty = (milliseconds: number) => ({
  ...systemClock,
  after: (_milliseconds: number, work: () => void) => systemClock.after(milliseconds, work),
})

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'life-'))
  certificate = await openCertificate(folder, systemClock, systemRandom)
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  for (const server of open) await new Promise((resolve) => server.close(resolve))
  await rm(folder, { recursive: true, force: true })
})

async function listen(server: Server): Promise<number> {
  server.on('connection', (socket: Socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  open.push(server)
  return (server.address() as AddressInfo).port
}
const at = (port: number, certificateFingerprint = certificate.fingerprint) => ({
  url: `https://127.0.0.1:${port}`,
  certificateFingerprint,
})

describe('a sign of life', () => {
  it('is the agent, by its certificate', async () => {
    const port = await listen(createServer({ cert: certificate.certificate, key: certificate.key }))
    expect(new X509Certificate(certificate.certificate).fingerprint256).toBeDefined()
    expect(await hostProbe(systemClock)(at(port))).toMatchObject({ answer: 'agent' })
    expect(await hostProbe(systemClock)(at(port, '0'.repeat(64)))).toMatchObject({
      answer: 'host',
      detail: 'Something else answers there.',
    })
  })

  it('is the host, when the agent has stopped and its port refuses', async () => {
    const server = createPlainServer()
    const port = await listen(server)
    open.splice(open.indexOf(server), 1)
    await new Promise((resolve) => server.close(resolve))
    expect(await hostProbe(systemClock)(at(port))).toMatchObject({ answer: 'host' })
  })

  it('is the host, when the agent hangs', async () => {
    const port = await listen(createPlainServer(() => {}))
    expect(await hostProbe(hasty(2_000))(at(port))).toMatchObject({
      answer: 'host',
      detail: expect.stringContaining('nothing answers on it'),
    })
  })

  it('is the host, when what answers speaks no TLS', async () => {
    const port = await listen(createPlainServer((socket) => socket.end('hello\n')))
    expect(await hostProbe(systemClock)(at(port))).toMatchObject({ answer: 'host' })
  })

  it('is missing, when nothing answers in time or the name is unknown', async () => {
    expect(await hostProbe(impatient)(at(await listen(createPlainServer(() => {}))))).toMatchObject({
      answer: 'nothing',
    })
    expect(await hostProbe(systemClock)({ ...at(9), url: 'https://no-such-host.invalid:9' })).toMatchObject({
      answer: 'nothing',
    })
    expect(await hostProbe(systemClock)({ ...at(9), url: 'nonsense' })).toMatchObject({ answer: 'nothing' })
  })
})

describe('an observation', () => {
  const observation = (requestedAt: string, answeredAt?: string) => ({
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Observation',
    metadata: { name: 'n1', namespace: 'node-n2' },
    spec: { endpoint: at(1), requestedAt },
    ...(answeredAt === undefined ? {} : { status: { requestedAt: answeredAt, answer: 'agent', detail: '' } as const }),
  })
  it('is made once for each question', () => {
    expect(planObservation(observation('1'))).toEqual([{ do: 'effect', name: 'look', input: { requestedAt: '1' } }])
    expect(planObservation(observation('2', '1'))).toHaveLength(1)
    expect(planObservation(observation('2', '2'))).toEqual([])
  })
})
