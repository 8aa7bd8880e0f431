/** A chunk of a guest's console delivered to 1 000 streams of server-sent events over HTTP, against a relay that writes
 *  the same bytes to as many connections. Ten servers with a hundred viewers each, one chunk of each after the
 *  other. */
import { createChannel, type Channel } from '../kit/http/channel.ts'
import { startServer } from '../kit/http/server.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import type { ConsoleLine } from '../apiserver/console/console.ts'
import { Server } from '../resources/server/index.ts'
import { type Cloud, openCloud, serverSpec } from './cloud.ts'
import { openFanOut } from './fan-out.ts'
import { type Bench, median, percentile, repeat } from './runner.ts'
import { openViewers } from './viewers.ts'

const SERVERS = { full: 10, short: 1 }
const VIEWERS_OF_SERVER = { full: 100, short: 2 }
const NODE = 'n1'
const LATENCY = 'ms until all have a chunk, p99'

export const bench: Bench = {
  name: 'B11 console',
  question: `console bytes to ${SERVERS.full * VIEWERS_OF_SERVER.full} streams`,
  subjectName: 'server-sent events',
  peerName: 'raw TCP relay of the same bytes',
  unit: 'events',
  goal: 0.5,
  limits: { [LATENCY]: 100 },
  heldBy:
    'one thread writes to the 1,000 sockets one after the other, and reads them too here: of its 40 microseconds of ' +
    'processor time an event almost half is the write of the kernel, a quarter the way through node:http, its chunks ' +
    'and the pipeline. The relay has one write for each.',
  tier: 'database',
  async open(round) {
    const hosts: Channel<ConsoleLine>[] = []
    const cloud = await openCloud([NODE], {
      agents: {
        async *follow(_node, _instance, signal) {
          const lines = createChannel<ConsoleLine>({ sizeMaximum: 1e9, sizeOf: () => 1, signal, onClosed: () => {} })
          hosts.push(lines)
          lines.push({ type: 'status', connected: true, running: true })
          yield* lines
        },
        write: async () => 'unreachable',
      },
    })
    await cloud.startCaches()
    const api = await startServer({ host: '127.0.0.1', port: 0, service: cloud.app.customers, clock, random, log })
    const [servers, viewers] = [SERVERS[round], VIEWERS_OF_SERVER[round]]
    const names: string[] = []
    for (let index = 0; index < servers; index++) names.push(await createRunning(cloud, index))
    const count = servers * viewers
    const watching = await openViewers({
      port: api.port,
      count,
      greeting: (index) =>
        `GET /v1/servers/${names[index % servers]}/console/stream HTTP/1.1\r\nhost: bench\r\n` +
        `authorization: Bearer ${cloud.tokens[index % cloud.tokens.length]}\r\n\r\n`,
    })
    const relay = await openFanOut()
    const relayed = await openViewers({ port: relay.port, count, greeting: () => '' })
    while (hosts.length < servers) await clock.sleep(10)
    const durations: number[] = []
    let number = 0
    const chunk = () => Buffer.from(`${newUuid(random)} line ${number++}\r\n`).toString('base64')
    const send = async () => {
      const data = chunk()
      const begin = clock.monotonicMilliseconds()
      const all = watching.all(data)
      for (const host of hosts) host.push({ type: 'output', data, log: '', end: 0 })
      await all
      durations.push(clock.monotonicMilliseconds() - begin)
    }
    const relaySame = async () => {
      const data = chunk()
      const all = relayed.all(data)
      relay.send(`event: output\ndata: {"data":"${data}"}\n\n`)
      await all
    }
    return {
      subject: { run: (seconds) => repeat(count, seconds, send) },
      peer: { run: (seconds) => repeat(count, seconds, relaySame) },
      facts: () => ({
        'ms until all have a chunk, median': median(durations).toFixed(1),
        [LATENCY]: percentile(durations, 0.99).toFixed(1),
      }),
      async close() {
        watching.close()
        relayed.close()
        relay.close()
        await api.stop(1_000)
        await cloud.close()
      },
    }
  },
}

async function createRunning({ store, namespace }: Cloud, index: number): Promise<string> {
  const name = newUuid(random)
  await store.create(Server, { metadata: { name, namespace }, spec: serverSpec(index) })
  await store.patch(Server, { namespace, name }, { status: { state: 'started', nodeName: NODE } }, 'status')
  return name
}
