/** A change of one Server delivered to 1 000 watches of the embedded Kubernetes API, in a separate process, over HTTPS,
 *  against a relay that writes the same bytes to as many TLS connections. The same code counts on both. After each
 *  change, a GET returns it too. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openClient } from '../kit/kube/client.ts'
import { installCrds } from '../kit/kube/crd.ts'
import { crds } from '../controllers/kit/crds.ts'
import { openHttpsTransport } from '../kit/kube/https-transport.ts'
import { readKubeconfig } from '../kit/kube/kubeconfig.ts'
import { Namespace } from '../kit/kube/object.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Server } from '../resources/server/index.ts'
import { newAuthority } from '../test/cluster/certificates.ts'
import { openFanOut } from './fan-out.ts'
import { draft, NAMESPACE, startEmbedded } from './kubernetes.ts'
import { type Bench, median, percentile, repeat } from './runner.ts'
import { openViewers } from './viewers.ts'

const WATCHES = { full: 1_000, short: 5 }
const LATENCY = 'ms until all have seen a change, p99'

export const bench: Bench = {
  name: 'B13 watchers',
  question: `a change seen by ${WATCHES.full} watches`,
  subjectName: 'watch events',
  peerName: 'raw TLS relay of the same bytes',
  unit: 'events',
  goal: 0.67,
  limits: { [LATENCY]: 100 },
  heldBy:
    'a change is encoded once; one thread of the API then encrypts and writes it to each of the 1,000 connections, ' +
    'which is 40 % of its time, the rest is mostly the passage of each through node:http with its chunks. All of it ' +
    'shares two cores with the thread that reads the 1,000 connections.',
  tier: 'database',
  async open(round) {
    const count = WATCHES[round]
    const folder = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
    const server = await startEmbedded(folder)
    const access = await readKubeconfig(server.kubeconfig, clock)
    const { transport, close } = openHttpsTransport(access)
    const store = openClient({ transport, fieldManager: 'bench', clock, random })
    await installCrds(store, crds(), clock)
    await store.create(Namespace, { metadata: { name: NAMESPACE }, spec: undefined })
    const key = { namespace: NAMESPACE, name: (await store.create(Server, draft())).metadata.name }
    const { resourceVersion } = await store.list(Server, { namespace: NAMESPACE })
    const authorization = await access.authorization?.()
    const watching = await openViewers({
      port: Number(new URL(access.url).port),
      count,
      ca: access.ca ?? '',
      greeting: () =>
        `GET /apis/${Server.group}/${Server.version}/namespaces/${NAMESPACE}/${Server.plural}?watch=true` +
        `&resourceVersion=${resourceVersion} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${authorization}\r\n\r\n`,
    })
    const authority = await newAuthority('svccloud-bench')
    const addresses = [{ type: 'ip', value: '127.0.0.1' }] as const
    const relay = await openFanOut(await authority.issue({ commonName: 'relay', addresses }))
    const relayed = await openViewers({ port: relay.port, count, ca: authority.certificate, greeting: () => '' })
    const durations: number[] = []
    const change = async () => {
      const stateDetail = newUuid(random)
      const begin = clock.monotonicMilliseconds()
      const all = watching.all(stateDetail)
      await store.patch(Server, key, { status: { state: 'started', stateDetail } }, 'status')
      await all
      durations.push(clock.monotonicMilliseconds() - begin)
      if ((await store.get(Server, key))?.status?.stateDetail !== stateDetail) throw new Error('a GET was behind')
    }
    const object = JSON.stringify({ type: 'MODIFIED', object: await store.get(Server, key) })
    const relaySame = async () => {
      const detail = newUuid(random)
      const all = relayed.all(detail)
      relay.send(`${object} ${detail}\n`)
      await all
    }
    return {
      subject: { run: (seconds) => repeat(count, seconds, change) },
      peer: { run: (seconds) => repeat(count, seconds, relaySame) },
      facts: () => ({
        'ms until all have seen a change, median': median(durations).toFixed(1),
        [LATENCY]: percentile(durations, 0.99).toFixed(1),
      }),
      async close() {
        watching.close()
        relayed.close()
        relay.close()
        await close()
        await server.stop()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}
