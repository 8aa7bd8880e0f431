import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { PodsPlane } from '../../../hosting/pods/plane.ts'
import { PORTS, READER } from '../../../hosting/pods/names.ts'
import { newRecord, type PodsRecord } from '../../../hosting/pods/record.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { ApiError, type Store } from '../../../kit/kube/store.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { newDesired } from '../processes/hosted.ts'
import { until } from '../../eventually.ts'
import { hostSettings } from './settings.ts'

const parts = { clock: systemClock, random: systemRandom, log: silentLog }
const settings = hostSettings()
const SERVICE = { clusterIP: '10.0.0.9', ports: ['api', 'tunnel'].map((name, at) => ({ name, nodePort: 31_000 + at })) }

interface Faults {
  /** Of somebody else's. */
  readonly takenPort?: number
  /** Nothing answers. */
  isAway?: boolean
  /** Whatever runs is whole at once. */
  readonly isQuick?: boolean
  /** Where its reader is. */
  readonly reader?: string
  /** Called before it takes what is applied, with the image of its pods. */
  readonly onApply?: (name: string, image: string) => Promise<void>
}

interface Workload {
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly replicas?: number
    readonly template?: { readonly spec: { readonly containers: readonly { readonly image: string }[] } }
  }
}

const wholeOf = ({ metadata, spec }: Workload) => {
  const { replicas = 1 } = spec
  const counts = { replicas, updatedReplicas: replicas, readyReplicas: replicas, availableReplicas: replicas }
  return { metadata, spec, status: counts }
}

/** Takes what is applied, and has Services and nothing else, or all workloads too where it is quick. */
function hostCluster(faults: Faults) {
  const applied: string[] = []
  const workloads = new Map<string, Workload>()
  const answer = async <Answer>(what: Answer): Promise<Answer> => {
    if (faults.isAway === true) throw new Unavailable('the Kubernetes API')
    return what
  }
  const store = {
    async apply(type: { readonly kind: string }, object: object) {
      if (type.kind === 'Service' && JSON.stringify(object).includes(`"nodePort":${faults.takenPort}`))
        throw new ApiError({ code: 422, reason: 'Invalid', message: 'provided port is already allocated' })
      const workload = object as Workload // of what a round applies
      const image = workload.spec?.template?.spec.containers[0]?.image
      if (image !== undefined) {
        await faults.onApply?.(workload.metadata.name, image)
        workloads.set(`${type.kind} ${workload.metadata.name}`, workload)
      }
      applied.push(type.kind)
      return answer(object)
    },
    delete: () => answer(undefined),
    get: ({ kind }: { readonly kind: string }) => answer(kind === 'Service' ? { spec: SERVICE } : undefined),
    list: ({ kind }: { readonly kind: string }) => {
      if (kind === 'Pod' && faults.reader !== undefined)
        return answer({ items: [{ metadata: { name: READER }, status: { podIP: faults.reader } }] })
      const known = [...workloads].filter(([key]) => faults.isQuick === true && key.startsWith(`${kind} `))
      return answer({ items: known.map(([, workload]) => wholeOf(workload)) })
    },
  }
  return { applied, store: store as unknown as Store } // of what a round calls
}

/** Begins a control plane, and ends it with the test. */
async function withPlane(
  record: PodsRecord,
  faults: Faults,
  look: (plane: PodsPlane, applied: readonly string[], folder: string) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-plane-'))
  const { applied, store: cluster } = hostCluster(faults)
  const plane = new PodsPlane({ folder, record, settings, cluster, ...parts })
  try {
    plane.start()
    await look(plane, applied, folder)
  } finally {
    await plane.stop()
    await rm(folder, { recursive: true, force: true })
  }
}
const untilSaid = (plane: PodsPlane, detail: string) =>
  until(
    `it to say ${detail}`,
    () => plane.state(),
    (state) => state.detail.includes(detail),
  )

test('a port that somebody else has by now is released', () =>
  withPlane(newRecord(newDesired(), settings, 31_000), { takenPort: 31_000 }, async (plane, applied, folder) => {
    await until(
      'the rest to be taken',
      () => applied,
      (kinds) => kinds.includes('StatefulSet'),
    )
    expect(plane.record.nodePort).toBeNull()
    expect(JSON.parse(await readFile(join(folder, 'record.json'), 'utf8'))).toMatchObject({ nodePort: null })
  }))

test('one that has lost its volumes is not begun anew as an empty one', () => {
  const record = { ...newRecord(newDesired({ replicas: 3 }), settings, null), release: '1.36.3' }
  return withPlane(record, {}, async (plane, applied) => {
    const state = await untilSaid(plane, 'the volumes of etcd are lost')
    expect(state).toMatchObject({ hasEtcdQuorum: false, apiServer: 'unhealthy', release: '1.36.3' })
    expect(applied).not.toContain('StatefulSet')
    expect(applied).not.toContain('Deployment')
  })
})

test('nothing is known of one whose host cluster does not answer', () => {
  const faults: Faults = {}
  const record = { ...newRecord(newDesired(), settings, null), release: '1.36.3' }
  return withPlane(record, faults, async (plane) => {
    await untilSaid(plane, 'the volumes of etcd are lost')
    faults.isAway = true
    expect((await untilSaid(plane, 'not available')).apiServer).toBe('unknown')
  })
})

test('a release that is requested in the middle of a round is not taken for the one that its API servers have', () => {
  const releases: string[] = []
  const isNewer = () => releases.includes('kube-controller-manager v1.36.3')
  let plane: PodsPlane | undefined
  const onApply = async (name: string, image: string) => {
    releases.push(`${name} ${image.split(':').at(-1)}`)
    if (name === 'kube-apiserver' && image.endsWith('v1.35.4'))
      await plane?.change((record) => ({ ...record, desired: { ...record.desired, release: '1.36.3' } }))
  }
  const record = newRecord(newDesired({ release: '1.35.4' }), settings, null)
  return withPlane(record, { isQuick: true, onApply }, async (begun) => {
    plane = begun
    await until('the controllers to be newer', isNewer, (is) => is)
    const ofParts = releases.filter((one) => /^kube-(apiserver|controller-manager) /.test(one))
    expect(ofParts).toEqual([
      'kube-apiserver v1.35.4',
      'kube-controller-manager v1.35.4',
      'kube-apiserver v1.36.3',
      'kube-controller-manager v1.36.3',
    ])
  })
})

interface Asked {
  readonly id: number
  readonly task: string
}
const AT = '127.86.7.2'

/** A reader with the certificates that are in the folder. */
async function playReader(folder: string, answer: (asked: Asked) => object): Promise<Server> {
  const [cert, key, ca] = await Promise.all(
    ['reader.crt', 'reader.key', 'reader-ca.crt'].map((name) => readFile(join(folder, name))),
  )
  const tls = { cert, key, ca, requestCert: true, rejectUnauthorized: true }
  const server = createServer(tls, (request, response) => {
    void text(request).then((question) => response.end(JSON.stringify(answer(JSON.parse(question)))))
  })
  await new Promise<void>((resolve) => server.listen(PORTS.reader, AT, resolve))
  return server
}
function endReader(server: Server): void {
  server.closeAllConnections()
  server.close()
}

test('a reader that answers what nobody asked is another one by the record, and one that only fails is not', () =>
  withPlane(newRecord(newDesired(), settings, null), { isQuick: true, reader: AT }, async (plane, _applied, folder) => {
    await untilSaid(plane, 'ECONNREFUSED')
    expect(plane.record.readers).toBe(0)
    const liar = await playReader(folder, () => ({ id: 7_777 }))
    await until(
      'another reader',
      () => plane.record.readers,
      (readers) => readers > 0,
    )
    endReader(liar)
    expect(JSON.parse(await readFile(join(folder, 'record.json'), 'utf8')).readers).toBeGreaterThan(0)
    const good = await playReader(folder, ({ id, task }) =>
      task === 'drain' ? { id, failure: { detail: 'no answer' } } : { id, ...(task === 'nodes' ? { value: [] } : {}) },
    )
    await until(
      'it to run',
      () => plane.state(),
      ({ phase }) => phase === 'running',
    )
    const { readers } = plane.record
    expect(await plane.cluster()?.ask('nodes')).toEqual([])
    await expect(plane.cluster()?.ask('drain', 'one')).rejects.toThrow('no answer')
    endReader(good)
    await expect(plane.cluster()?.ask('nodes')).rejects.toThrow()
    expect(plane.record.readers).toBe(readers)
  }))
