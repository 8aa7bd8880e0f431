/** Memory of a cached object: the heap of a process whose cache has 100 000 Servers, against the bytes of their JSON.
 *  The objects are the API's answers for a running server, including its status, each parsed separately. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Cache } from '../kit/kube/cache.ts'
import type { KubeObject } from '../kit/kube/object.ts'
import { heapBytes } from '../kit/sys/process.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Server, type ServerSpec, type ServerStatus } from '../resources/server/index.ts'
import { openCloud } from './cloud.ts'
import type { Bench } from './runner.ts'
import { createStartedServers, NODE } from './started-servers.ts'

const OBJECTS = { full: 100_000, short: 5_000 }
const MEBIBYTE = 1_048_576

type ServerObject = KubeObject<ServerSpec, ServerStatus>

export const bench: Bench = {
  name: 'B09 memory',
  question: `${OBJECTS.full} Servers in a cache`,
  subjectName: 'cached objects',
  peerName: 'their JSON',
  unit: 'objects',
  per: 'MiB',
  goal: 1.11,
  heldBy:
    'every object has its own strings and members, as parsed. Half of its bytes are conditions, the operation and ' +
    'timestamps, which the controllers read.',
  pairs: 3,
  isCount: true,
  tier: 'database',
  async open(round) {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void // there since the flag
    const sample = await startedServer()
    const count = OBJECTS[round]
    const bytes = count * Buffer.byteLength(variant(sample, count))
    return {
      subject: {
        async run() {
          collect()
          const before = heapBytes()
          const cache = new Cache(Server, (error) => {
            throw error
          })
          const items = Array.from({ length: count }, (_, index) => JSON.parse(variant(sample, index)) as ServerObject)
          cache.takeList({ items, resourceVersion: String(count + 1) })
          items.length = 0
          collect()
          const taken = heapBytes() - before
          if (cache.size !== count) throw new Error(`the cache has ${cache.size} objects`)
          return { units: count, seconds: taken / MEBIBYTE }
        },
      },
      peer: { run: async () => ({ units: count, seconds: bytes / MEBIBYTE }) },
      facts: () => ({ 'bytes of JSON an object': Math.round(bytes / count) }),
      close: async () => {},
    }
  },
}

interface Sample {
  readonly text: string
  readonly name: string
  readonly uid: string
}

/** In the form of the API's answer, without the managedFields that no cache keeps. */
async function startedServer(): Promise<Sample> {
  const cloud = await openCloud([NODE])
  await createStartedServers(cloud, 1)
  const { items } = await cloud.store.list(Server)
  await cloud.close()
  const [server] = items
  if (server === undefined) throw new Error('there is no server')
  const { managedFields: _managed, ...metadata } = server.metadata
  return { text: JSON.stringify({ ...server, metadata }), name: metadata.name, uid: metadata.uid ?? '' }
}

/** Another object of the same kind. */
const variant = ({ text, name, uid }: Sample, index: number): string =>
  text
    .replaceAll(name, newUuid(random))
    .replaceAll(uid, newUuid(random))
    .replace(/"resourceVersion":"\d+"/, `"resourceVersion":"${index + 1}"`)
