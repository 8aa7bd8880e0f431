/** Requests through a load balancer's machine, as the platform sets it up, against the same HAProxy with a handwritten
 *  file in the same place, which sends servers the same information about clients: the real programs in network
 *  namespaces, the same servers behind both. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runProgram } from '../agents/node/run-program.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { nodeBinary } from '../kit/sys/process.ts'
import {
  BACKENDS,
  openBalancerPair,
  PAGES_PORT,
  type Role,
  SHARED,
} from '../test/controllers/nouns/load-balancer/pair.ts'
import { asLineProcess } from '../test/controllers/network/ovn/line-process.ts'
import { until } from '../test/eventually.ts'
import { processorMicrosecondsOf } from './processor.ts'
import { type Bench, median, percentile, type Side } from './runner.ts'

const CONNECTIONS = { full: 32, short: 2 }
const CHANGES = { full: 20, short: 1 }
const [OURS, BY_HAND] = [80, 8091]
const TRAFFIC = join(import.meta.dirname, 'traffic.ts')
const P99 = 'ms of a request, p99'
/** The proxy and its servers share the processors with other programs: a single pair says little. */
const PAIRS = 21

const byHand = `global
  maxconn 8000
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
frontend web
  bind :${BY_HAND}
  http-request del-header X-Forwarded-For
  option forwardfor
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Port %[dst_port]
  default_backend web
backend web
  balance roundrobin
${BACKENDS.map((address, at) => `  server s${at} ${address}:${PAGES_PORT} check`).join('\n')}
`

const configuration = (generation: number, addresses: readonly string[]) => ({
  generation,
  frontends: [{ name: 'web', port: OURS, mode: 'http', backend: 'web' }],
  backends: [
    {
      name: 'web',
      members: addresses.map((address) => ({ name: `m${address.at(-1)}`, address, port: PAGES_PORT })),
    },
  ],
})

/** Proxies in the namespace, except one. */
async function proxiesIn(namespace: string, other: number | undefined): Promise<readonly number[]> {
  const pids = (await runProgram('ip', ['netns', 'pids', namespace])).match(/\d+/g)?.map(Number) ?? []
  const names = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')))
  return pids.filter((pid, at) => pid !== other && names[at]?.trim() === 'haproxy')
}

export const bench: Bench = {
  name: 'B64 load balancer',
  question: `requests on ${CONNECTIONS.full} connections through a machine of a load balancer`,
  subjectName: "a load balancer's machine",
  peerName: 'the same HAProxy by hand',
  unit: 'requests',
  goal: 0.95,
  tier: 'network',
  pairs: PAIRS,
  async open(round) {
    const pair = await openBalancerPair()
    const folder = await mkdtemp(join(tmpdir(), 'svccloud-b64-'))
    const taken = { subject: [] as number[], peer: [] as number[] }
    const microseconds = { subject: 0, peer: 0 }
    const effects: number[] = []
    let generation = 0
    const deliver = async (addresses: readonly string[]): Promise<void> => {
      const answers = await pair.deliver(configuration((generation += 1), addresses))
      const fault = answers.find((answer) => answer?.detail !== '')?.detail
      if (fault !== undefined) throw new Error(fault)
    }
    const haproxy = async (place: Role, text: string, name: string) => {
      const file = join(folder, name)
      await writeFile(file, text)
      // Linux divides processor time between sessions: a service has a separate session.
      return pair.start(place, 'setsid', 'haproxy', '-q', '-f', file)
    }
    const page = (port: number) =>
      pair.run('out', 'curl', '-s', '--max-time', '5', `http://${SHARED}:${port}/`).catch(() => '')
    const isPage = (text: string) => text.endsWith(' page')

    await deliver(BACKENDS)
    const [active = 'a'] = await until('an owner of the address', pair.owners, ({ length }) => length === 1)
    const peer = await haproxy(active, byHand, 'by-hand.cfg')
    for (const port of [OURS, BY_HAND]) await until('a page', () => page(port), isPage)
    const proxies = { subject: await proxiesIn(pair.spaceOf(active), peer.pid), peer: [peer.pid ?? 0] }
    const client = asLineProcess(pair.start('out', nodeBinary(), TRAFFIC), 'the client')
    const sideOf = (side: keyof typeof taken, port: number): Side => ({
      async run(seconds) {
        const order = { do: 'requests', address: SHARED, port, connections: CONNECTIONS[round], seconds }
        const before = await processorMicrosecondsOf(proxies[side])
        // as traffic.ts says
        const answer = (await client.order(order)) as { readonly milliseconds: number[]; readonly seconds: number }
        taken[side].push(...answer.milliseconds)
        microseconds[side] += (await processorMicrosecondsOf(proxies[side])) - before
        return { units: answer.milliseconds.length, seconds: answer.seconds }
      },
    })
    const perRequest = (side: keyof typeof taken) => (microseconds[side] / taken[side].length).toFixed(1)
    return {
      subject: sideOf('subject', OURS),
      peer: sideOf('peer', BY_HAND),
      async finish() {
        for (let change = 0; change < CHANGES[round]; change++) {
          const address = BACKENDS[change % BACKENDS.length] ?? ''
          await deliver(BACKENDS.filter((other) => other !== address))
          const startedAt = clock.monotonicMilliseconds()
          const delivered = deliver([address])
          await until(
            'its page',
            () => page(OURS),
            (text) => text.startsWith(`${address} `),
          ) // with the new configuration
          effects.push(clock.monotonicMilliseconds() - startedAt)
          await delivered
        }
      },
      facts: () => ({
        [P99]: percentile(taken.subject, 0.99).toFixed(1),
        'by hand': percentile(taken.peer, 0.99).toFixed(1),
        'µs of processor of a request': perRequest('subject'),
        'µs by hand': perRequest('peer'),
        'ms from the delivery of a configuration to its effect, median': median(effects).toFixed(0),
      }),
      async close() {
        await client.close()
        peer.kill('SIGKILL')
        await pair.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}
